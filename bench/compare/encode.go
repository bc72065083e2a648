package compare

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// encoder appends a block in the form of a protocol. It belongs to one agent.
type encoder func(dst []byte, b *block) []byte

// key returns the key of a series in the store.
func key(agent, i int) []byte {
	k := metric.AppendPart(nil, "agent")
	k = metric.AppendPart(k, agentName(agent))
	k = metric.AppendPart(k, "metrics")
	return metric.AppendPart(k, metricName(i))
}

// batches are the store's own batch messages, and a flush.
func batches(agent, metrics int) encoder {
	keys := make([][]byte, metrics)
	for i := range keys {
		keys[i] = key(agent, i)
	}
	return func(dst []byte, b *block) []byte {
		for r := range b.rows {
			dst = wire.AppendBatchStart(dst, uint64(b.slot)+uint64(r))
			for i, v := range b.values[r*metrics : (r+1)*metrics] {
				dst = wire.AppendBatchPoint(dst, keys[i], point.FromInt(v))
			}
			dst = wire.AppendBatchEnd(dst)
		}
		return wire.AppendFlush(dst)
	}
}

// lines is the encoder of a protocol in which every point is a line: what
// stands before the value, the value, what stands between it and the time, the
// time in seconds, and the end.
func lines(metrics int, prefix func(i int) string, between, end string) encoder {
	prefixes := make([]string, metrics)
	for i := range prefixes {
		prefixes[i] = prefix(i)
	}
	return func(dst []byte, b *block) []byte {
		for r := range b.rows {
			at := b.slot + int64(r)
			for i, v := range b.values[r*metrics : (r+1)*metrics] {
				dst = append(dst, prefixes[i]...)
				dst = strconv.AppendInt(dst, v, 10)
				dst = append(dst, between...)
				dst = strconv.AppendInt(dst, at, 10)
				dst = append(dst, end...)
			}
		}
		return dst
	}
}

// graphiteLines is the text of Graphite.
func graphiteLines(agent, metrics int) encoder {
	return lines(metrics, func(i int) string {
		return "agent." + agentName(agent) + ".metrics." + metricName(i) + " "
	}, " ", "\n")
}

// influxLines is the line protocol of InfluxDB, with times in nanoseconds.
func influxLines(agent, metrics int) encoder {
	return lines(metrics, func(i int) string {
		return "metrics,agent=" + agentName(agent) + ",metric=" + metricName(i) + " value="
	}, "i ", "000000000\n")
}

// csvLines is agent, metric, value, time.
func csvLines(agent, metrics int) encoder {
	return lines(metrics, func(i int) string {
		return agentName(agent) + "," + metricName(i) + ","
	}, ",", "\n")
}

// Field keys of a remote-write request: number and wire type.
const (
	seriesField    = 1<<3 | 2 // WriteRequest.timeseries
	labelField     = 1<<3 | 2 // TimeSeries.labels
	sampleField    = 2<<3 | 2 // TimeSeries.samples
	nameField      = 1<<3 | 2 // Label.name
	valueField     = 2<<3 | 2 // Label.value
	numberField    = 1<<3 | 1 // Sample.value
	timestampField = 2 << 3   // Sample.timestamp, ms
)

func appendBytes(dst []byte, field byte, b []byte) []byte {
	dst = append(dst, field)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func appendLabel(dst []byte, name, value string) []byte {
	label := appendBytes(nil, nameField, []byte(name))
	return appendBytes(dst, labelField, appendBytes(label, valueField, []byte(value)))
}

func appendSample(dst []byte, value float64, ms int64) []byte {
	var buf [32]byte
	s := append(buf[:0], numberField)
	s = binary.LittleEndian.AppendUint64(s, math.Float64bits(value))
	s = append(s, timestampField)
	return appendBytes(dst, sampleField, binary.AppendUvarint(s, uint64(ms)))
}

// remoteWrite is Prometheus' remote write 1.0: the rows of a series stand
// together.
func remoteWrite(agent, metrics int) encoder {
	labels := make([][]byte, metrics)
	for i := range labels {
		labels[i] = appendLabel(labels[i], "__name__", "metrics")
		labels[i] = appendLabel(labels[i], "agent", agentName(agent))
		labels[i] = appendLabel(labels[i], "metric", metricName(i))
	}
	var series, request []byte
	return func(dst []byte, b *block) []byte {
		request = request[:0]
		for i := range metrics {
			series = append(series[:0], labels[i]...)
			for r := range b.rows {
				series = appendSample(series, float64(b.values[r*metrics+i]), 1000*(b.slot+int64(r)))
			}
			request = appendBytes(request, seriesField, series)
		}
		return s2.EncodeSnappy(dst[:cap(dst)], request)
	}
}
