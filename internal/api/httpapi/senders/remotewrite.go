package senders

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/ingest/remotewrite"
)

// The names of the messages of remote write, in the parameter proto of Content-Type.
var protos = map[string]remotewrite.Version{
	"":                               remotewrite.V1,
	"prometheus.WriteRequest":        remotewrite.V1,
	"io.prometheus.write.v2.Request": remotewrite.V2,
}

// remoteWrite stores the points of a request of Prometheus' remote write.
func (o *Options) remoteWrite(bucket string, w http.ResponseWriter, r *http.Request,
	in Body) error {
	version, err := remoteWriteVersion(r)
	if err != nil {
		return err
	}
	msg, err := o.unsnapped(in)
	if err != nil {
		return err
	}
	written, err := o.RemoteWrite.Write(r.Context(), bucket, peer(r), version, msg)
	if version == remotewrite.V2 {
		for name, n := range map[string]int{"Samples": written.Samples,
			"Histograms": written.Histograms, "Exemplars": 0} {
			w.Header().Set("X-Prometheus-Remote-Write-"+name+"-Written", strconv.Itoa(n))
		}
	}
	if err := stored(err); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unsnapped reads a whole body that is compressed in the block format of snappy.
func (o *Options) unsnapped(in Body) ([]byte, error) {
	packed, err := o.read(in)
	if err != nil {
		return nil, err
	}
	size, err := s2.DecodedLen(packed)
	if err != nil {
		return nil, badSnappy(err)
	}
	if int64(size) > o.MaxBody {
		return nil, o.tooLarge(int64(size))
	}
	if err := in.Grow(int64(size)); err != nil {
		return nil, err
	}
	msg, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, badSnappy(err)
	}
	return msg, nil
}

func badSnappy(err error) error {
	return &Error{Status: http.StatusBadRequest,
		Text: fmt.Sprintf("the body is not in the block format of snappy: "+
			"%v", err)}
}

// remoteWriteVersion returns the version that the headers of a request speak of.
func remoteWriteVersion(r *http.Request) (remotewrite.Version, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "snappy" {
		return 0, &Error{Status: http.StatusUnsupportedMediaType,
			Text: fmt.Sprintf("Content-Encoding %q: remote "+
				"write is compressed with snappy", coding)}
	}
	content := r.Header.Get("Content-Type")
	if content == "" {
		return remotewrite.V1, nil
	}
	media, params, err := mime.ParseMediaType(content)
	if err == nil && media == "application/x-protobuf" {
		if v, ok := protos[params["proto"]]; ok {
			return v, nil
		}
	}
	return 0, &Error{Status: http.StatusUnsupportedMediaType,
		Text: fmt.Sprintf("Content-Type %q: remote write is "+
			"application/x-protobuf, with proto=prometheus.WriteRequest or "+
			"proto=io.prometheus.write.v2.Request", content)}
}
