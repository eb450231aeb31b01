package sqlite

import "C" // for malloc.c
