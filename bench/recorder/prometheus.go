package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dalmatiner/bench/corpus"
)

// Scraped returns the corpus of what a Prometheus has scraped of a job, with the
// milliseconds of its scrapes. span is how far back it looks, such as 2h.
func Scraped(ctx context.Context, addr, job, span, name, about string,
	interval int64) (*corpus.Corpus, error) {
	query := url.Values{"query": {fmt.Sprintf("{job=%q}[%s]", job, span)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+addr+"/api/v1/query?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var got struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]json.RawMessage // time in seconds, text
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return nil, err
	}
	if got.Error != "" {
		return nil, errors.New("Prometheus says: " + got.Error)
	}
	var b builder
	for _, r := range got.Data.Result {
		labels := labelsOf(r.Metric)
		for _, v := range r.Values {
			at, err := milliseconds(string(v[0]))
			if err != nil {
				return nil, err
			}
			b.add(labels, at, strings.Trim(string(v[1]), `"`))
		}
	}
	return b.corpus(name, about, interval)
}

// labelsOf returns the labels sorted, the name first.
func labelsOf(metric map[string]string) []corpus.Label {
	labels := []corpus.Label{{Name: "__name__", Value: metric["__name__"]}}
	for name, value := range metric {
		if name != "__name__" {
			labels = append(labels, corpus.Label{Name: name, Value: value})
		}
	}
	slices.SortFunc(labels[1:], func(a, b corpus.Label) int { return strings.Compare(a.Name, b.Name) })
	return labels
}

// milliseconds reads seconds with up to three digits behind the point.
func milliseconds(seconds string) (int64, error) {
	whole, part, _ := strings.Cut(seconds, ".")
	if len(part) > 3 {
		return 0, fmt.Errorf("time %s has more than three digits behind the point", seconds)
	}
	return parseInt(whole + part + "000"[len(part):])
}
