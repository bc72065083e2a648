package query

import "dalmatiner/internal/query/function"

// Function describes one function of the language.
type Function = function.Function

// Functions returns all functions of the language in the order of their groups. The result
// is the caller's.
func Functions() []Function { return function.All() }
