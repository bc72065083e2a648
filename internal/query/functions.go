package query

import "dalmatiner/internal/query/function"

// Functions returns all functions of the language in the order of their groups. The result
// is the caller's.
func Functions() []function.Function { return function.All() }
