#include "launch/bench/report/table.h"

#include "common/base/html.h"
#include <stdarg.h>
#include <string.h>

void table_escape(FILE *to, const char *text)
{
    html_put(text, strlen(text), to);
}

void table_begin(struct table *table, FILE *to, enum table_form form, const char *columns)
{
    table->to = to;
    table->form = form;
    table->columns = table->rows = 0;
    for (const char *at = columns; table->columns < TABLE_MOST_COLUMNS; at++) {
        size_t length = strcspn(at, ",");
        int is_text = *at == '<';

        table->is_text[table->columns] = is_text;
        snprintf(table->head[table->columns++], TABLE_CELL, "%.*s", (int)length - is_text, at + is_text);
        at += length;
        if (*at == '\0')
            break;
    }
}

/* A bar or a tag in a name, which may be a path of somebody's, would end a cell of Markdown or be one; HTML is escaped as it is written. */
static void put_cell(enum table_form form, const char *from, size_t length, char *cell)
{
    static const char *const instead[][2] = {{"|", "\\|"}, {"<", "&lt;"}, {">", "&gt;"}};
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        const char one[2] = {from[i], '\0'}, *put = one;

        for (size_t k = 0; k < sizeof instead / sizeof *instead && form == TABLE_TEXT; k++)
            put = *instead[k][0] == from[i] ? instead[k][1] : put;
        if (used + strlen(put) >= TABLE_CELL)
            break;
        memcpy(cell + used, put, strlen(put));
        used += strlen(put);
    }
    cell[used] = '\0';
}

void table_row(struct table *table, const char *format, ...)
{
    char line[TABLE_MOST_COLUMNS * TABLE_CELL];
    const char *at = line;
    va_list list;

    if (table->rows == TABLE_MOST_ROWS)
        return;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    for (int c = 0; c < table->columns; c++) {
        size_t length = strcspn(at, "\t");

        put_cell(table->form, at, length, table->cell[table->rows][c]);
        at += length + (at[length] == '\t');
    }
    table->rows++;
}

static void write_text_cell(const struct table *table, int column, int width, const char *cell)
{
    fprintf(table->to, table->is_text[column] ? " %-*s |" : " %*s |", width, cell);
}

static void write_text(const struct table *table)
{
    int width[TABLE_MOST_COLUMNS];

    for (int c = 0; c < table->columns; c++) {
        width[c] = (int)strlen(table->head[c]) > 3 ? (int)strlen(table->head[c]) : 3;
        for (int r = 0; r < table->rows; r++)
            width[c] = (int)strlen(table->cell[r][c]) > width[c] ? (int)strlen(table->cell[r][c]) : width[c];
    }
    fputc('|', table->to);
    for (int c = 0; c < table->columns; c++)
        write_text_cell(table, c, width[c], table->head[c]);
    fputs("\n|", table->to);
    for (int c = 0; c < table->columns; c++) {
        for (int i = 0; i < width[c] + 1; i++)
            fputc('-', table->to);
        fputs(table->is_text[c] ? "-|" : ":|", table->to);
    }
    for (int r = 0; r < table->rows; r++) {
        fputs("\n|", table->to);
        for (int c = 0; c < table->columns; c++)
            write_text_cell(table, c, width[c], table->cell[r][c]);
    }
    fputs("\n\n", table->to);
}

static void write_html_row(const struct table *table, const char *tag, const char (*cells)[TABLE_CELL])
{
    fputs("<tr>", table->to);
    for (int c = 0; c < table->columns; c++) {
        fprintf(table->to, "<%s%s>", tag, table->is_text[c] ? " class=\"text\"" : "");
        table_escape(table->to, cells[c]);
        fprintf(table->to, "</%s>", tag);
    }
    fputs("</tr>\n", table->to);
}

static void write_html(const struct table *table)
{
    fputs("<div class=\"wide\"><table>\n<thead>", table->to);
    write_html_row(table, "th", table->head);
    fputs("</thead>\n<tbody>\n", table->to);
    for (int r = 0; r < table->rows; r++)
        write_html_row(table, "td", table->cell[r]);
    fputs("</tbody></table></div>\n", table->to);
}

void table_end(struct table *table)
{
    if (table->form == TABLE_TEXT)
        write_text(table);
    else
        write_html(table);
}
