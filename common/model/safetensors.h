/* Reads the header of a safetensors file: 8 bytes of little-endian length, that many bytes of JSON, then the data. The header is believed only where
 * it agrees with itself and with the file's size: every tensor's bytes are shape times dtype, and the tensors tile the data from its first byte to
 * the file's last, without hole or overlap. Owns nothing; reads no weight; for checkpoint.c alone. */
#ifndef TANDEM_COMMON_MODEL_SAFETENSORS_H
#define TANDEM_COMMON_MODEL_SAFETENSORS_H

#include "common/base/status.h"
#include "common/file/file_map.h"
#include "common/model/checkpoint_table.h"

/* Adds every tensor of the file to the table, whatever its dtype. STATUS_DATA: the line names file and tensor. */
enum status safetensors_read(const struct file_map *file, struct checkpoint_table *table);

#endif
