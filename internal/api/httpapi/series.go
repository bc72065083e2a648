package httpapi

import (
	"net/http"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
)

// deleteSeries deletes the series of one metric, or of those that begin with
// whole parts.
func (a *api) deleteSeries(w http.ResponseWriter, r *http.Request) error {
	var in admin.SeriesChoice
	if err := readBody(r, &in); err != nil {
		return err
	}
	bucket, err := bucketName(in.Bucket)
	if err != nil {
		return err
	}
	text := in.Metric
	if (in.Metric == "") == (in.Prefix == "") {
		return badRequest("give one of metric, the name of a series, and prefix, the parts that names " +
			"begin with")
	}
	if in.Prefix != "" {
		text = in.Prefix
	}
	choice := deletion.Choice{Prefix: in.Prefix != ""}
	if choice.Key, err = metric.ParseText(text); err != nil {
		return badRequest("%.200q: %v", text, err)
	}
	d, err := a.Store.DeleteSeries(r.Context(), bucket, choice, in.DryRun)
	if err != nil {
		return nearBuckets(a.Store, bucket, nearMetrics(r.Context(), a.Store, bucket, choice.Key, err))
	}
	if !in.DryRun {
		a.Logger.Info("series deleted", "bucket", in.Bucket, "metric", in.Metric, "prefix", in.Prefix,
			"series", d.Series, "remote", r.RemoteAddr)
	}
	return writeJSON(w, admin.DeletedSeries{
		Series:   d.Series,
		DryRun:   in.DryRun,
		Segments: d.Segments,
		Bytes:    d.Bytes,
	})
}
