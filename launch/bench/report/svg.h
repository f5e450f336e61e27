/* Charts as SVG, drawn by hand: a frame with axes, ticks and units, and lines, dots and bars in its coordinates. Colours are classes of the page
 * (k0 .. k9), so that a dark page has its own. Text is escaped. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_SVG_H
#define TANDEM_LAUNCH_BENCH_REPORT_SVG_H

#include <stdio.h>

struct svg {
    FILE *to;
    double width, height;
    double left, right, top, bottom; /* margins around the plot */
    double x0, x1, y0, y1;           /* what the plot spans */
    int log_x, log_y;
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* `about`: what a reader hears who does not see it. Margins are those of a chart with axes; change them before svg_frame. */
void svg_open(struct svg *svg, FILE *to, double width, double height, const char *about);
void svg_close(struct svg *svg);

/* From here on x and y are of the plot. Limits of logarithmic axes are above 0. */
void svg_span(struct svg *svg, double x0, double x1, double y0, double y1);
/* Grid, ticks and names of the axes, of those that have a name; whole: x has whole numbers alone. */
void svg_frame(const struct svg *svg, const char *x_name, const char *y_name, int whole);
double svg_x(const struct svg *svg, double x);
double svg_y(const struct svg *svg, double y);

/* how: classes, "k0" or "k0 dashed". A value that is not finite leaves a gap. */
void svg_line(const struct svg *svg, const double *x, const double *y, int count, const char *how);
void svg_dots(const struct svg *svg, const double *x, const double *y, int count, const char *how);
/* A dot with what it may be wrong by, up and down. */
void svg_error(const struct svg *svg, double x, double y, double half, const char *how);
/* In pixels of the picture. */
void svg_box(const struct svg *svg, double left, double top, double width, double height, const char *how, const char *about);
void svg_text(const struct svg *svg, double x, double y, enum svg_anchor anchor, const char *how, const char *text);
void svg_arrow(const struct svg *svg, double from_x, double from_y, double to_x, double to_y, const char *how);

/* The step of ticks for a span, 1, 2 or 5 times a power of ten, so that there are about `wanted`. */
double svg_step(double span, int wanted);

#endif
