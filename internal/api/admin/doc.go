// Package admin is the operator's side of a running node: the JSON messages of
// the admin routes, a client for them, and the commands of ddb admin, ddb-admin
// and ddb query with their tables.
//
// Names of buckets travel and are printed in the escape of package metric, so
// that a name of any bytes can be read, typed and given back.
package admin
