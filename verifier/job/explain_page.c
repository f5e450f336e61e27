#include "verifier/job/explain_page.h"

#include "common/base/html.h"
#include "common/base/log.h"
#include "common/base/visible.h"
#include "verifier/job/explain.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 32 }; /* bytes of a token that its card shows */

static const char style[] =
    ":root{--ground:#fff;--text:#1d2430;--soft:#5b6675;--line:#cfd6de;--panel:#f7f9fb;--good:#1a7f4b;--bad:#b42318;--last:#2f62c9;--q:#9aa3ad}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#14181f;--text:#e4e8ee;--soft:#9aa5b4;--line:#3a434f;--panel:#1b212a;--good:#5cc58f;"
    "--bad:#ff9a8f;--last:#8ab0ff;--q:#77818d}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,-apple-system,'Segoe "
    "UI',Roboto,sans-serif}"
    "main{max-width:1280px;margin:0 auto;padding:24px}h1{font-size:22px;margin:0}h2{font-size:17px;margin:20px 0 8px}.soft{color:var(--soft)}\n"
    "nav{position:sticky;top:0;background:var(--ground);padding:10px 0;display:flex;gap:8px;align-items:center}nav[hidden]{display:none}nav "
    "input{flex:1}button{font:inherit;"
    "padding:2px 12px}output{min-width:9ch;text-align:right;font-variant-numeric:tabular-nums}\n"
    "#text{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:10px 12px;"
    "max-height:32vh;overflow:auto;font:14px/1.5 ui-monospace,Menlo,Consolas,monospace}.prompt{color:var(--soft)}.now ins{color:var(--good)}"
    ".now b{color:var(--last)}ins{text-decoration:none}#text b{font-weight:inherit}.later{display:none}\n"
    ".tree{overflow-x:auto;padding:4px 0}ul{list-style:none;margin:0;padding:0 0 0 22px}.tree>ul{padding:0}li{display:flex;align-items:center;"
    "position:relative;padding:4px 0}li li::before{content:'';position:absolute;left:-11px;width:11px;top:50%;border-top:1px solid var(--line)}"
    "li li:not(:only-child)::after{content:'';position:absolute;left:-11px;top:0;bottom:0;border-left:1px solid var(--line)}"
    "li li:first-child::after{top:50%}li li:last-child:not(:only-child)::after{bottom:50%}\n"
    ".card:not(:last-child)::after{content:'';position:absolute;left:100%;width:11px;top:50%;border-top:1px solid var(--line)}\n"
    ".card{width:176px;flex:none;position:relative;border:1px solid var(--line);border-left:4px solid var(--soft);border-radius:6px;padding:6px "
    "10px;background:"
    "var(--panel);font-size:12.5px}.card b{font:600 14px ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}.card p{margin:4px 0 0;"
    "color:var(--soft)}.accepted>.card{border-left-color:var(--good)}.rejected>.card{border-left-color:var(--bad)}.last>.card{border-left-color:"
    "var(--last)}.accepted>.card b{color:var(--good)}.rejected>.card b{color:var(--bad)}.last>.card b{color:var(--last)}.passed>.card{opacity:.65}\n"
    ".bar{display:grid;grid-template-columns:1ch 1fr 6ch;gap:6px;align-items:center;font-variant-numeric:tabular-nums}.bar "
    "i{display:block;height:7px;"
    "min-width:1px;background:var(--q)}.bar.p i{background:var(--last)}.bar u{text-decoration:none;text-align:right}\n";

/* Rounds are counted from 1, as in the address behind #. */
static const char script[] =
    "const rounds=[...document.querySelectorAll('section')],spans=[...document.querySelectorAll('#text>span[data-round]')],\n"
    "  slider=document.querySelector('nav input'),shown=document.querySelector('nav output');\n"
    "let at=1;\n"
    "function show(round){\n"
    "  at=Math.max(1,Math.min(rounds.length,round));\n"
    "  rounds.forEach((section,i)=>{section.hidden=i+1!=at});\n"
    "  spans.forEach(span=>{const of=+span.dataset.round;span.className=of>at?'later':of==at?'now':''});\n"
    "  slider.value=at;\n"
    "  shown.textContent=at+' of '+rounds.length;\n"
    "  history.replaceState(null,'','#'+at);\n"
    "  spans[at-1].scrollIntoView({block:'nearest'});\n"
    "}\n"
    "const keys={ArrowLeft:()=>at-1,ArrowRight:()=>at+1,Home:()=>1,End:()=>rounds.length};\n"
    "document.addEventListener('keydown',event=>{\n"
    "  if(!keys[event.key]||event.ctrlKey||event.altKey||event.metaKey)return;\n"
    "  event.preventDefault();\n"
    "  show(keys[event.key]());\n"
    "});\n"
    "document.querySelectorAll('nav button').forEach((button,i)=>button.addEventListener('click',()=>show(at+2*i-1)));\n"
    "slider.addEventListener('input',()=>show(+slider.value));\n"
    "addEventListener('hashchange',()=>show(+location.hash.slice(1)||1));\n"
    "document.querySelector('nav').hidden=false;\n"
    "show(+location.hash.slice(1)||1);\n";

enum status explain_page_open(struct explain_page *page)
{
    *page = (struct explain_page){.text = NULL};
    utf8_stream_init(&page->stream);
    page->text = open_memstream(&page->text_bytes, &page->text_size);
    page->rounds = open_memstream(&page->rounds_bytes, &page->rounds_size);
    if (page->text != NULL && page->rounds != NULL)
        return STATUS_OK;
    log_error("no memory for --explain-page");
    return STATUS_INTERNAL;
}

void explain_page_close(struct explain_page *page)
{
    if (page->text != NULL)
        fclose(page->text);
    if (page->rounds != NULL)
        fclose(page->rounds);
    free(page->text_bytes);
    free(page->rounds_bytes);
    *page = (struct explain_page){.text = NULL};
}

/* A character that spans tokens is the last one's. */
static void put_text(struct explain_page *page, const struct tokenizer *tokenizer, int32_t token, int is_first)
{
    enum { PART = 250 };
    char out[3 * (PART + 3)];
    size_t length;
    const char *piece = tokenizer_piece(tokenizer, token, is_first, 0, &length);

    for (size_t part; length > 0; piece += part, length -= part) {
        part = length < PART ? length : PART;
        html_put(out, utf8_stream_push(&page->stream, piece, part, out), page->text);
    }
}

void explain_page_prompt(struct explain_page *page, const struct tokenizer *tokenizer, const int32_t *tokens, int count)
{
    char out[4];

    fputs("<span class=\"prompt\">", page->text);
    for (int i = 0; i < count; i++)
        put_text(page, tokenizer, tokens[i], i == 0);
    html_put(out, utf8_stream_finish(&page->stream, out), page->text);
    utf8_stream_init(&page->stream);
    fputs("</span>", page->text);
}

static void put_token(const struct tokenizer *tokenizer, int32_t token, FILE *to)
{
    char quoted[VISIBLE_QUOTED(PIECE)];
    size_t length;
    const char *piece = tokenizer_piece(tokenizer, token, 0, 1, &length);

    fputs("<b>", to);
    html_put(quoted, visible_quote(piece, length, PIECE, quoted), to);
    fputs("</b>", to);
}

static void put_bar(char name, double probability, FILE *to)
{
    if (probability >= 0) /* else the decision knows of none */
        fprintf(to, "<div class=\"bar %c\">%c<i style=\"width:%.1f%%\"></i><u>%.4f</u></div>", name, name, 100 * probability, probability);
}

/* The words of `--explain`; of the last token with -1. */
static void put_why(struct explain_page *page, const struct explained *explained, int node, const struct tokenizer *tokenizer)
{
    char *text = NULL;
    size_t size = 0;
    FILE *why = open_memstream(&text, &size);

    page->failed |= why == NULL;
    if (why == NULL)
        return;
    if (node >= 0)
        explain_fate(explained, node, tokenizer, why);
    else
        explain_draw(explained, why);
    page->failed |= fclose(why) != 0;
    fputs("<p>", page->rounds);
    html_put(text, size, page->rounds);
    fputs("</p>", page->rounds);
    free(text);
}

/* The draft that the round's last token follows; -1: none. */
static int end_of_path(const struct explained *explained)
{
    int end = -1;

    for (int i = 0; i < explained->count; i++)
        if (explained->node[i].fate == EXPLAINED_ACCEPTED && explained->node[i].parent == end)
            end = i;
    return end;
}

/* What follows a draft, or with -1 the newest committed token. */
static void put_children(struct explain_page *page, const struct explained *explained, int parent, const struct tokenizer *tokenizer)
{
    static const char *const fates[] = {[EXPLAINED_ACCEPTED] = "accepted", [EXPLAINED_REJECTED] = "rejected", [EXPLAINED_PASSED] = "passed"};
    const int is_last = parent == end_of_path(explained);
    int count = is_last;
    FILE *to = page->rounds;

    for (int i = 0; i < explained->count; i++)
        count += explained->node[i].parent == parent;
    if (count == 0)
        return;
    fputs("<ul>", to);
    for (int i = 0; i < explained->count; i++) {
        const struct explained_node *node = &explained->node[i];

        if (node->parent != parent)
            continue;
        fprintf(to, "\n<li class=\"%s\"><div class=\"card\">", fates[node->fate]);
        put_token(tokenizer, node->token, to);
        put_bar('q', node->q, to);
        put_bar('p', node->p, to);
        put_why(page, explained, i, tokenizer);
        fputs("</div>", to);
        put_children(page, explained, i, tokenizer);
        fputs("</li>", to);
    }
    if (is_last) {
        fputs("\n<li class=\"last\"><div class=\"card\">", to);
        put_token(tokenizer, explained->token, to);
        put_why(page, explained, -1, tokenizer);
        fputs("</div></li>", to);
    }
    fputs("</ul>", to);
}

/* The committed tokens, in their order: drafts along the path, then the last. */
static void put_committed(struct explain_page *page, const struct explained *explained, const struct tokenizer *tokenizer, int kept)
{
    fprintf(page->text, "<span data-round=\"%d\"><ins>", page->count);
    for (int i = 0, end = -1; i < explained->count && kept > 0; i++)
        if (explained->node[i].fate == EXPLAINED_ACCEPTED && explained->node[i].parent == end) {
            put_text(page, tokenizer, explained->node[i].token, 0);
            end = i;
            kept--;
        }
    fputs("</ins><b>", page->text);
    if (kept > 0)
        put_text(page, tokenizer, explained->token, 0);
    fputs("</b></span>", page->text);
}

void explain_page_round(struct explain_page *page, const struct explained *explained, const struct tokenizer *tokenizer, int kept)
{
    page->count++;
    page->tokens += kept;
    page->drafts += explained->count;
    for (int i = 0; i < explained->count; i++)
        page->accepted += explained->node[i].fate == EXPLAINED_ACCEPTED;
    put_committed(page, explained, tokenizer, kept);
    fputs("<section>\n<h2>", page->rounds);
    explain_head(explained, page->count, page->rounds);
    fputs("</h2>\n<div class=\"tree\">", page->rounds);
    put_children(page, explained, -1, tokenizer);
    fputs("</div>\n", page->rounds);
    explain_end(explained, kept, "<p>", page->rounds);
    fputs("</section>\n", page->rounds);
}

static void put_page(const struct explain_page *page, FILE *to)
{
    fprintf(
        to,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>tandem: round by round</title>\n<style>\n%s</style>\n</head>\n<body><main>\n<h1>Round by round</h1>\n"
        "<p class=\"soft\">%d tokens in %d round%s; %d of %d drafts accepted. Green: accepted; red: rejected; grey: not looked at; blue: the round's "
        "last token, the target's. q: how probable the drafter found a draft; p: the target.</p>\n",
        style, page->tokens, page->count, page->count == 1 ? "" : "s", page->accepted, page->drafts);
    fprintf(to,
            "<nav hidden><button title=\"Left\">&#9664;</button><button title=\"Right\">&#9654;</button><input type=\"range\" min=\"1\" max=\"%d\" "
            "value=\"1\" aria-label=\"round\"><output></output></nav>\n<div id=\"text\">",
            page->count);
    fwrite(page->text_bytes, 1, page->text_size, to);
    fputs("</div>\n", to);
    fwrite(page->rounds_bytes, 1, page->rounds_size, to);
    if (page->count > 0)
        fprintf(to, "<script>\n%s</script>\n", script);
    fputs("</main></body>\n</html>\n", to);
}

enum status explain_page_write(struct explain_page *page, const char *path)
{
    char out[4];
    FILE *file = NULL;
    int written = 0;

    html_put(out, utf8_stream_finish(&page->stream, out), page->text);
    errno = ENOMEM;
    if (!page->failed && fflush(page->text) == 0 && fflush(page->rounds) == 0 && !ferror(page->text) && !ferror(page->rounds))
        file = fopen(path, "w");
    if (file != NULL) {
        put_page(page, file);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    if (written)
        return STATUS_OK;
    log_error("--explain-page %s: %s", path, strerror(errno));
    return STATUS_IO;
}
