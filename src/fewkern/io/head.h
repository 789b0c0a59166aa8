/*
COMMENT
 */
#include <NEEDED>

#ifndef NAME_DECLARED
#define NAME_DECLARED
#ifdef __cplusplus
extern "C" {
#endif
enum { SIZES };
FUNCTIONS
#ifdef __cplusplus
}
#endif
#endif /* NAME_DECLARED */
