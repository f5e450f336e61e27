#include "launch/bench/report/svg.h"

#include "launch/bench/report/table.h"
#include <math.h>

void svg_open(struct svg *svg, FILE *to, double width, double height, const char *about)
{
    *svg = (struct svg){.to = to, .width = width, .height = height, .left = 56, .right = 14, .top = 12, .bottom = 44, .x1 = 1, .y1 = 1};
    fprintf(to, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", width, height);
    table_escape(to, about);
    fprintf(to, "\">\n");
}

void svg_close(struct svg *svg)
{
    fputs("</svg>\n", svg->to);
}

void svg_span(struct svg *svg, double x0, double x1, double y0, double y1)
{
    svg->x0 = x0;
    svg->x1 = x1 > x0 ? x1 : x0 + 1;
    svg->y0 = y0;
    svg->y1 = y1 > y0 ? y1 : y0 + 1;
}

static double part(double value, double from, double upto, int is_log)
{
    return is_log ? log(value / from) / log(upto / from) : (value - from) / (upto - from);
}

double svg_x(const struct svg *svg, double x)
{
    return svg->left + (svg->width - svg->left - svg->right) * part(x, svg->x0, svg->x1, svg->log_x);
}

double svg_y(const struct svg *svg, double y)
{
    return svg->height - svg->bottom - (svg->height - svg->top - svg->bottom) * part(y, svg->y0, svg->y1, svg->log_y);
}

double svg_step(double span, int wanted)
{
    double raw = span / wanted, power = pow(10, floor(log10(raw > 0 ? raw : 1)));
    double first = raw / power;

    return power * (first <= 1 ? 1 : first <= 2 ? 2 : first <= 5 ? 5 : 10);
}

void svg_text(const struct svg *svg, double x, double y, enum svg_anchor anchor, const char *how, const char *text)
{
    static const char *const name[] = {"start", "middle", "end"};

    fprintf(svg->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, name[anchor], how);
    table_escape(svg->to, text);
    fputs("</text>\n", svg->to);
}

/* "1k" and "1M" where a number is long and round. */
static void write_number(char text[32], double value)
{
    if (value >= 1e6 && fmod(value, 1e6) < 1)
        snprintf(text, 32, "%gM", value / 1e6);
    else if (value >= 1e4 && fmod(value, 1e3) < 1)
        snprintf(text, 32, "%gk", value / 1e3);
    else
        snprintf(text, 32, "%g", fabs(value) < 1e-12 ? 0 : value);
}

static void write_tick(const struct svg *svg, double at, int is_x)
{
    double x = is_x ? svg_x(svg, at) : svg->left, y = is_x ? svg->height - svg->bottom : svg_y(svg, at);
    char text[32];

    write_number(text, at);
    fprintf(svg->to, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, y, is_x ? x : svg->width - svg->right,
            is_x ? svg->top : y);
    svg_text(svg, is_x ? x : x - 7, is_x ? y + 16 : y + 4, is_x ? SVG_MIDDLE : SVG_END, "tick", text);
}

static void write_ticks(const struct svg *svg, int is_x, int whole)
{
    double from = is_x ? svg->x0 : svg->y0, upto = is_x ? svg->x1 : svg->y1, step;

    if (is_x ? svg->log_x : svg->log_y) {
        for (double at = pow(10, floor(log10(from))); at <= upto * 1.0001; at *= 10)
            if (at >= from * 0.9999)
                write_tick(svg, at, is_x);
        return;
    }
    step = svg_step(upto - from, is_x ? 8 : 5);
    step = whole && step < 1 ? 1 : step;
    for (double at = ceil(from / step - 1e-9) * step; at <= upto + step * 1e-9; at += step)
        write_tick(svg, at, is_x);
}

void svg_frame(const struct svg *svg, const char *x_name, const char *y_name, int whole)
{
    double middle = (svg->top + svg->height - svg->bottom) / 2;

    if (x_name != NULL)
        write_ticks(svg, 1, whole);
    if (y_name != NULL)
        write_ticks(svg, 0, 0);
    fprintf(svg->to, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", svg->left, svg->height - svg->bottom,
            svg->width - svg->right, svg->height - svg->bottom);
    if (x_name != NULL)
        svg_text(svg, (svg->left + svg->width - svg->right) / 2, svg->height - 8, SVG_MIDDLE, "name", x_name);
    if (y_name == NULL)
        return;
    fprintf(svg->to, "<g transform=\"rotate(-90 14 %.1f)\">", middle);
    svg_text(svg, 14, middle, SVG_MIDDLE, "name", y_name);
    fputs("</g>\n", svg->to);
}

void svg_line(const struct svg *svg, const double *x, const double *y, int count, const char *how)
{
    int drawn = 0;

    fprintf(svg->to, "<path class=\"line %s\" d=\"", how);
    for (int i = 0; i < count; i++) {
        if (!isfinite(y[i]) || !isfinite(x[i])) {
            drawn = 0;
            continue;
        }
        fprintf(svg->to, "%s%.1f %.1f", drawn ? " L" : " M", svg_x(svg, x[i]), svg_y(svg, y[i]));
        drawn = 1;
    }
    fputs("\"/>\n", svg->to);
}

void svg_dots(const struct svg *svg, const double *x, const double *y, int count, const char *how)
{
    for (int i = 0; i < count; i++)
        if (isfinite(y[i]) && isfinite(x[i]))
            fprintf(svg->to, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", how, svg_x(svg, x[i]), svg_y(svg, y[i]));
}

void svg_error(const struct svg *svg, double x, double y, double half, const char *how)
{
    double low = y - half > svg->y0 ? y - half : svg->y0, high = y + half < svg->y1 ? y + half : svg->y1;

    fprintf(svg->to, "<line class=\"line %s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", how, svg_x(svg, x), svg_y(svg, low),
            svg_x(svg, x), svg_y(svg, high));
    svg_dots(svg, &x, &y, 1, how);
}

void svg_box(const struct svg *svg, double left, double top, double width, double height, const char *how, const char *about)
{
    fprintf(svg->to, "<rect class=\"box %s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"><title>", how, left, top, width > 0 ? width : 0,
            height);
    table_escape(svg->to, about);
    fputs("</title></rect>\n", svg->to);
}

void svg_arrow(const struct svg *svg, double from_x, double from_y, double to_x, double to_y, const char *how)
{
    double length = hypot(to_x - from_x, to_y - from_y), x = (to_x - from_x) / (length > 0 ? length : 1),
           y = (to_y - from_y) / (length > 0 ? length : 1);

    fprintf(svg->to, "<path class=\"line %s\" d=\"M%.1f %.1f L%.1f %.1f M%.1f %.1f L%.1f %.1f L%.1f %.1f\"/>\n", how, from_x, from_y, to_x, to_y,
            to_x - 6 * x - 3 * y, to_y - 6 * y + 3 * x, to_x, to_y, to_x - 6 * x + 3 * y, to_y - 6 * y - 3 * x);
}
