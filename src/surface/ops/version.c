/* version - what runs here. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <uv.h>
#include <zstd.h>

#include "surface/ops/libraries.h"
