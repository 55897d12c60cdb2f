#ifndef MAREY_TESTS_TOLD_PAYLOAD_H
#define MAREY_TESTS_TOLD_PAYLOAD_H

/* Emit structured NVTX payloads, if its headers support them. Returns 0 on success. */
int payloads_with_schemas(void);

#endif
