package plan

import (
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
)

// namer names the series of one field. Variables take the values of the
// series, or of the first one where several were combined.
type namer struct {
	p         *planner
	f         *dql.Field
	canonical string
}

func (n *namer) name(s Series) (string, error) {
	if n.f.As == nil {
		return n.canonical, nil
	}
	var name []byte
	for i, e := range n.f.As.Elems {
		if i > 0 {
			name = append(name, '.')
		}
		text, _, err := n.element(e, s)
		if err != nil {
			return "", err
		}
		name = metric.AppendQuoted(name, text)
	}
	return string(name), nil
}

// element returns the value of an element; ok is false for a variable that
// the series has no value for, which is empty text in names and null in
// metadata.
func (n *namer) element(e dql.PatternElem, s Series) (text []byte, ok bool, err error) {
	switch {
	case e.Dim != nil:
		if n.p.offers.Index == nil {
			return nil, false, n.p.unsupported(e.Pos, "dimensions ($"+e.Dim.Name+")")
		}
		v, ok := valueOf(s.tags, *e.Dim)
		return []byte(v), ok, nil
	case e.Position > 0:
		parts, _ := metric.Parts(s.Key)
		if e.Position > int64(len(parts)) {
			return nil, false, nil
		}
		return parts[e.Position-1], true, nil
	}
	return []byte(e.Text), true, nil
}

// metadata returns the field's METADATA for a series. Text is printed with
// the escape of package metric, because JSON cannot hold any bytes.
func (n *namer) metadata(s Series) (map[string]any, error) {
	if n.f.Meta == nil {
		return nil, nil
	}
	m := make(map[string]any, len(n.f.Meta))
	for _, pair := range n.f.Meta {
		name := metric.Escape(pair.Key)
		if pair.Number != nil {
			m[name] = pair.Number.Value
			continue
		}
		text, ok, err := n.element(pair.Elem, s)
		if err != nil {
			return nil, err
		}
		m[name] = nil
		if ok {
			m[name] = metric.Escape(string(text))
		}
	}
	return m, nil
}
