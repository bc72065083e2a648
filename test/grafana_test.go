package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/testkit/golden"
)

// grafana sends requests as the original's plugin for Grafana does: names stand in paths as they
// are, but for what a browser encodes by itself, and every request has the token of the source.
type grafana struct {
	*node
	shown strings.Builder // requests with their answers
}

// get returns the body of the answer to a request, which must be 200.
func (g *grafana) get(path string) []byte {
	g.t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	path += sep + "token=secret"
	text, err := url.PathUnescape(path)
	if err != nil {
		g.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, "http://"+g.http+strings.ReplaceAll(path, " ", "%20"),
		nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %s %s, %v", path, resp.Status, body, err)
	}
	const most = 300
	answer := strings.TrimSuffix(queryTime.ReplaceAllString(string(body), `"query_time":0`), "\n")
	if len(answer) > most {
		answer = answer[:most] + "…"
	}
	fmt.Fprintf(&g.shown, "> GET %s\n%s\n\n", text, answer)
	return body
}

// grafanaList is an answer that is a list.
func grafanaList[E any](g *grafana, path string) (list []E) {
	g.t.Helper()
	if err := json.Unmarshal(g.get(path), &list); err != nil {
		g.t.Fatalf("%s: %v", path, err)
	}
	return list
}

// tagKeys returns the keys that the plugin offers: those of all namespaces, and dl:tag in place of
// the names of namespace label.
func (g *grafana) tagKeys(collection string) (keys []string) {
	g.t.Helper()
	for _, ns := range grafanaList[string](g, "/collections/"+collection+"/namespaces") {
		switch ns {
		case "label":
			keys = append(keys, "dl:tag")
		case "ddb":
		default:
			for _, tag := range grafanaList[string](g,
				"/collections/"+collection+"/namespaces/"+ns+"/tags") {
				keys = append(keys, strings.TrimPrefix(ns+":"+tag, ":"))
			}
		}
	}
	return keys
}

// tagValues returns what the plugin offers behind a key.
func (g *grafana) tagValues(collection, ns, tag string) []string {
	g.t.Helper()
	if ns == "dl" && tag == "tag" {
		return grafanaList[string](g, "/collections/"+collection+"/namespaces/label/tags")
	}
	return grafanaList[string](g, "/collections/"+collection+"/namespaces/"+ns+"/tags/"+tag+"/values")
}

// metrics returns the parts that the plugin offers behind others, in the order of their bytes.
func (g *grafana) metrics(collection string, behind ...string) (parts []string) {
	g.t.Helper()
	type metric struct {
		Key   []byte // base64
		Parts []string
	}
	for _, m := range grafanaList[metric](g, "/collections/"+collection+"/metrics") {
		if len(m.Key) == 0 {
			g.t.Errorf("%q has no key", m.Parts)
		}
		if len(m.Parts) > len(behind) && slices.Equal(m.Parts[:len(behind)], behind) {
			parts = append(parts, m.Parts[len(behind)])
		}
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// query returns the series of a query, by names without quotes, as time and value.
func (g *grafana) query(selectors string, end time.Time, span time.Duration) map[string]string {
	g.t.Helper()
	text := fmt.Sprintf("SELECT %s BEFORE \"%s\" FOR %ds", selectors,
		end.UTC().Format("2006-01-02 15:04:05"), int(span.Seconds()))
	var answer struct {
		Start   int64
		Results []struct {
			Name       string
			Values     []*float64
			Resolution int64
		}
	}
	if err := json.Unmarshal(g.get("/?q="+strings.ReplaceAll(url.QueryEscape(text), "+", "%20")),
		&answer); err != nil {
		g.t.Fatalf("%s: %v", text, err)
	}
	out := make(map[string]string)
	for _, r := range answer.Results {
		var b strings.Builder
		for i, v := range r.Values {
			if v != nil {
				fmt.Fprintf(&b, "%d=%g ", (answer.Start+int64(i)*r.Resolution)/1000-shopStart, *v)
			}
		}
		out[strings.ReplaceAll(r.Name, "'", "")] += b.String()
	}
	return out
}

// functions returns the functions that the plugin has in each of its menus, by what it reads of a
// function.
func (g *grafana) functions() map[string][]string {
	g.t.Helper()
	type function struct {
		Name      string
		Combiner  string `json:"combiner_type"`
		Signature []string
	}
	out := make(map[string][]string)
	for _, f := range grafanaList[function](g, "/functions") {
		menu := "Arithmetic"
		switch {
		case f.Name == "" || f.Combiner == "" || f.Signature == nil:
			g.t.Errorf("the plugin cannot show function %+v", f)
		case f.Combiner != "none":
			menu = "Combine"
		case slices.Equal(f.Signature, []string{"metric"}):
			menu = "Transform"
		case slices.Equal(f.Signature, []string{"metric", "time"}):
			menu = "Aggregate"
		}
		out[menu] = append(out[menu], f.Name)
	}
	return out
}

// grafanaTags make collections of the shop: one of the original's kind, with metrics that are no
// keys of series, and names that are odd in a path.
const grafanaTags = `{"bucket":"shop","metric":["web","eu","requests"],"collection":"my org","name":["base","requests"],"tags":{"dl:source":"eu1","label:production":"","site":"eu","k8s:app.example/name":"shop"}}
{"bucket":"shop","metric":["web","us","requests"],"collection":"my org","name":["base","requests"],"tags":{"dl:source":"us1","label:staging":"","site":"us"}}
{"bucket":"shop","metric":["web","eu","errors"],"collection":"my org","name":["base","errors"],"tags":{"dl:source":"eu1","site":"eu"}}
{"bucket":"shop","metric":["temp"],"collection":"my org","tags":{"site":""}}
`

// TestOldGrafanaPlugin plays all requests that the original's plugin for Grafana makes, in its
// form, and looks at what it takes out of the answers. testdata/grafana.txt shows them.
func TestOldGrafanaPlugin(t *testing.T) {
	t.Parallel()
	g := &grafana{node: startNode(t, t.TempDir(), "--set", "self_monitor=off")}
	fillShop(t, g.node)
	if in, err := g.admin().ImportTags(context.Background(),
		strings.NewReader(grafanaTags)); err != nil || in.Changed != 4 {
		t.Fatalf("%+v, %v", in, err)
	}
	same := func(what string, got any, want any) {
		t.Helper()
		if a, b := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); a != b {
			t.Errorf("%s: got %s, want %s", what, a, b)
		}
	}
	type texts = []string
	g.get("/") // "Save & test" wants 200
	same("collections", grafanaList[string](g, "/collections"), texts{"my org", "shop"})
	same("metrics", g.metrics("my org"), texts{"base", "temp"})
	same("metrics below base", g.metrics("my org", "base"), texts{"errors", "requests"})
	same("metrics of a bucket without tags", g.metrics("shop", "web", "eu"),
		texts{"errors", "requests"})
	same("keys", g.tagKeys("my org"), texts{"site", "dl:source", "k8s:app.example/name", "dl:tag"})
	same("keys of a bucket without tags", g.tagKeys("shop"), texts(nil))
	same("labels", g.tagValues("my org", "dl", "tag"), texts{"production", "staging"})
	same("values of source", g.tagValues("my org", "dl", "source"), texts{"eu1", "us1"})
	same("values of site", g.tagValues("my org", "", "site"), texts{"", "eu", "us"})
	same("values of a tag with a slash", g.tagValues("my org", "k8s", "app.example/name"),
		texts{"shop"})
	menus := g.functions()
	for menu, name := range map[string]string{"Aggregate": "avg", "Transform": "derivate",
		"Combine": "sum", "Arithmetic": "divide"} {
		if !slices.Contains(menus[menu], name) {
			t.Errorf("%s is not among %s: %q", name, menu, menus[menu])
		}
	}
	end := time.Unix(shopStart+3, 0)
	for _, c := range []struct {
		selectors string
		want      map[string]string
	}{
		{`'base'.'requests' FROM 'my org' WHERE dl:'source' = 'eu1'`,
			map[string]string{"base.requests FROM my org WHERE dl:source = eu1": "0=10 1=12 2=11 "}},
		{`'base'.'requests' FROM 'my org' WHERE label:'production' AND 'site' = 'eu' AS $1`,
			map[string]string{"web": "0=10 1=12 2=11 "}},
		{`'base'.'requests' FROM 'my org' WHERE 'site' != 'eu' AS $2, 'base'.'errors' FROM 'my org' AS $dl:'source'`,
			map[string]string{"us": "0=20 1=21 2=19 ", "eu1": "0=0 1=0 2=1 "}},
		{`'temp' FROM 'my org' WHERE 'site' = ''`,
			map[string]string{"temp FROM my org WHERE site = ": "1=21 "}},
		{`divide(avg('web'.'eu'.'requests' FROM 'shop', 30s), 1) AS $3`,
			map[string]string{"requests": "0=11 "}},
		{`sum('base'.'requests' FROM 'my org' WHERE 'site' = 'eu' OR 'site' = 'us') AS x`,
			map[string]string{"x": "0=30 1=33 2=30 "}},
		{`'base'.'requests' FROM 'my org' WHERE 'site' = 'eu' SHIFT BY 1s`,
			map[string]string{"base.requests FROM my org WHERE site = eu SHIFT BY 1s": "1=10 2=12 "}},
	} {
		same(c.selectors, g.query(c.selectors, end, 3*time.Second), c.want)
	}
	golden.Same(t, "testdata/grafana.txt", g.shown.String())
}
