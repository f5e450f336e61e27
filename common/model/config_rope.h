/* The rotary positions of a config.json: rope_theta and rope_scaling, or both in rope_parameters, which newer files have instead. For config.c
 * alone. Local; owns nothing. */
#ifndef TANDEM_COMMON_MODEL_CONFIG_ROPE_H
#define TANDEM_COMMON_MODEL_CONFIG_ROPE_H

#include "common/model/checkpoint_json.h"
#include "common/model/config.h"

/* Fills in the fields rope_* of a config whose sizes are read, and lengthens its context where YaRN does. STATUS_DATA: the line names the file, the
 * key and what was expected. */
enum status config_rope_read(const struct checkpoint_json *json, struct config *config);

#endif
