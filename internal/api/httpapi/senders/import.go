package senders

import "net/http"

// importLines stores series in JSON, a line each.
func (o *Options) importLines(bucket string, w http.ResponseWriter, r *http.Request,
	in Body) error {
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
