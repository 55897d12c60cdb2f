#ifndef MAREY_TESTS_TOLD_PAYLOAD_H
#define MAREY_TESTS_TOLD_PAYLOAD_H

/* Tell NVTX of payloads that are more than a number; nothing where its headers know none. 0 when all went well. */
int payloads_with_schemas(void);

#endif
