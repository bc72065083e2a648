package senders

import "net/http"

// importLines stores series in JSON, a line each, in the bucket of remote write.
func (o *Options) importLines(w http.ResponseWriter, r *http.Request, in Body) error {
	return o.importInto(o.RemoteWriteBucket, w, r, in)
}

// importNamedLines is importLines into the bucket that the path names.
func (o *Options) importNamedLines(w http.ResponseWriter, r *http.Request, in Body) error {
	bucket, err := named(r)
	if err != nil {
		return err
	}
	return o.importInto(bucket, w, r, in)
}

func (o *Options) importInto(bucket string, w http.ResponseWriter, r *http.Request, in Body) error {
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	if _, err := o.JSONLines.Write(r.Context(), bucket, peer(r), body); err != nil {
		return stored(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
