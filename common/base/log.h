/* One line to stderr per event, whole or not at all (a single write), prefixed with the program and its rank. Levels: error (the run or a request
 * fails), warn (it goes on, differently from what was asked), info (shown unless --quiet), debug (--verbose). It owns the process's label and level,
 * which are set before threads start; then any thread may log, but where a function says otherwise. Never ends the process. */
#ifndef TANDEM_COMMON_BASE_LOG_H
#define TANDEM_COMMON_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Sets the label of every later line (copied, at most 63 bytes) and the highest level shown. Local; call before threads start. */
void log_init(const char *label, enum log_level highest);
int log_shows(enum log_level level);

/* A model's files are read by every rank, by some several times. A warning of what is in them is said once after log_init, and not at all after
 * log_leave_files: others say it. Local; only while one thread logs. */
void log_leave_files(void);
void log_file_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Many ranks often fail for one reason, which is to be told once. Between log_hold and log_let_go errors are kept; log_let_go writes them (`told`
 * set) or drops them, and later errors are written at once. Local; between the two no second thread logs. */
void log_hold(void);
void log_let_go(int told);

/* Later lines go to this descriptor, stderr's until then and after log_init: where stdout goes to the same place, two ways there would mix them. */
void log_to(int fd);

/* With `clear`, a line of progress may stand on the terminal without an end of line, and is cleared before each line that is logged. */
void log_clear_lines(int clear);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
