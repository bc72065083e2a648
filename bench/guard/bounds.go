package guard

// bounds are what figures of the guard must not be above: what was measured last,
// with room for what is not meant. Bytes have a thousandth: the data is the same
// each time. Instructions and allocations of an operation hardly change from
// run to run; half as much again is left for compilers and small changes, and
// what allocates nothing has room for a few in the background. What servers
// allocate has twice, and processor time, which others on the machine change,
// three times of what it was.
//
// Where a report.Figure gets better, its bound goes down with it.
var bounds = map[string]float64{
	"size: uniform, flushed": 2_291_300, // 10.17 bits a point
	"size: uniform, merged":  2_297_600, // 10.20
	"size: the mix, flushed": 585_200,   // 2.60
	"size: the mix, merged":  592_300,   // 2.63

	"allocations: decode a batch":                      0.5,
	"allocations: decode entries":                      0.5,
	"allocations: append point by point":               0.5,
	"allocations: append a batch":                      0.5,
	"allocations: append entries":                      0.5,
	"allocations: encode a chunk, uniform":             0.5,
	"allocations: decode a chunk, uniform":             0.5,
	"allocations: encode a chunk, counter":             0.5,
	"allocations: decode a chunk, counter":             0.5,
	"allocations: read ten minutes":                    5,
	"allocations: aggregate ten minutes by the minute": 3,
	"allocations: parse a query":                       17,

	"instructions: decode a batch":                      126,
	"instructions: decode entries":                      270,
	"instructions: append point by point":               273,
	"instructions: append a batch":                      85,
	"instructions: append entries":                      153,
	"instructions: encode a chunk, uniform":             38,
	"instructions: decode a chunk, uniform":             21,
	"instructions: encode a chunk, counter":             59,
	"instructions: decode a chunk, counter":             27,
	"instructions: read ten minutes":                    47,
	"instructions: aggregate ten minutes by the minute": 55,
	"instructions: parse a query":                       30_000,

	"processor time: batch, ddb ÷ discard":               15,
	"allocations: server under batch":                    4.3,
	"allocations: max of a series, after batch":          350,
	"allocations: average of 1280 series, after batch":   30_000,
	"processor time: entries, ddb ÷ discard":             3.8,
	"allocations: server under entries":                  33,
	"allocations: max of a series, after entries":        350,
	"allocations: average of 2000 series, after entries": 45_000,
}
