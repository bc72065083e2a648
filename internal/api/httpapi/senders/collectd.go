package senders

import "net/http"

// collectdValues stores the JSON of collectd's plugin write_http, which takes no answer but 200 as
// good.
func (o *Options) collectdValues(w http.ResponseWriter, r *http.Request, in Body) error {
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	now := o.Now().UnixNano()
	if _, err := o.Collectd.Write(r.Context(), o.CollectdBucket, peer(r), now, body); err != nil {
		return stored(err)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
