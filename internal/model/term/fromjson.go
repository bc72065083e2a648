package term

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendFromJSON appends the term of a JSON value. The value has to be the only one of text,
// and text has to be UTF-8. The term is within the limits. The error wraps ErrMalformed or
// ErrTooLarge; dst is returned as it was then.
func AppendFromJSON(dst, text []byte) ([]byte, error) {
	out, _, err := fromJSON(dst, text, "")
	return out, err
}

// AppendObjectFromJSON is AppendFromJSON for a JSON object. The field take at its top is left
// out of the term and returned: nil if there is none, a string, or a json.Number. Anything
// else there is an error.
func AppendObjectFromJSON(dst, text []byte, take string) (out []byte, taken any, err error) {
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) > 0 && first[0] != '{' {
		return dst, nil, malformed("an event is a JSON object, not %.20q", first)
	}
	return fromJSON(dst, text, take)
}

func fromJSON(dst, text []byte, take string) (out []byte, taken any, err error) {
	if len(text) > MaxSize {
		return dst, nil, tooLarge("JSON of %d bytes, the limit is %d", len(text), MaxSize)
	}
	if !utf8.Valid(text) {
		return dst, nil, malformed("JSON that is not UTF-8")
	}
	r := jsonReader{in: json.NewDecoder(bytes.NewReader(text)), dst: Begin(dst), take: take}
	r.in.UseNumber()
	err = r.value(0)
	if err == nil {
		if _, more := r.in.Token(); more != io.EOF {
			err = malformed("more than one JSON value")
		}
	}
	if n := len(r.dst) - len(dst); err == nil && n > MaxSize {
		err = tooLarge("%d bytes, the limit is %d", n, MaxSize)
	}
	if err != nil {
		return dst, nil, err
	}
	return r.dst, r.taken, nil
}

// jsonReader appends terms to dst as it reads JSON.
type jsonReader struct {
	in    *json.Decoder
	dst   []byte
	count int
	take  string
	taken any
}

func (r *jsonReader) token() (json.Token, error) {
	t, err := r.in.Token()
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, malformed("JSON that ends too early")
	case err != nil:
		return nil, malformed("JSON: %v", err)
	}
	return t, nil
}

func (r *jsonReader) value(depth int) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	return r.valueOf(t, depth)
}

func (r *jsonReader) valueOf(t json.Token, depth int) error {
	if r.count++; r.count > MaxElements {
		return tooLarge("more than %d values", MaxElements)
	}
	if depth > MaxDepth {
		return tooLarge("it nests deeper than %d levels", MaxDepth)
	}
	switch t := t.(type) {
	case nil:
		r.dst = AppendAtom(r.dst, "null")
	case bool:
		r.dst = AppendAtom(r.dst, strconv.FormatBool(t))
	case string:
		r.dst = AppendText(r.dst, t)
	case json.Number:
		return r.number(string(t))
	case json.Delim:
		if t == '{' {
			return r.object(depth)
		}
		return r.array(depth)
	default:
		return fmt.Errorf("term: a JSON token of type %T", t)
	}
	return nil
}

func (r *jsonReader) number(text string) error {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			r.dst = AppendInt(r.dst, n)
			return nil
		}
		const digits = MaxInteger * 8 * 30103 / 100000 // log10(2)
		if len(text) > digits {
			return tooLarge("an integer of %d digits, the limit is %d", len(text), digits)
		}
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return malformed("the number %s", text)
		}
		r.dst = appendBig(r.dst, n)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return malformed("the number %.40s has no place in 64 bits", text)
	}
	r.dst = AppendFloat(r.dst, f)
	return nil
}

func (r *jsonReader) array(depth int) error {
	var mark, n int
	r.dst, mark = BeginList(r.dst)
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		if t == json.Delim(']') {
			r.dst = EndList(r.dst, mark, n)
			return nil
		}
		if err := r.valueOf(t, depth+1); err != nil {
			return err
		}
		n++
	}
}

func (r *jsonReader) object(depth int) error {
	var mark, n int
	r.dst, mark = BeginMap(r.dst)
	seen := make(map[string]struct{})
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok { // }
			EndMap(r.dst, mark, n)
			return r.binary(mark, seen)
		}
		if _, twice := seen[key]; twice {
			return malformed("the field %.40q is given twice", key)
		}
		seen[key] = struct{}{}
		if depth == 0 && r.take != "" && key == r.take {
			if err := r.takeField(); err != nil {
				return err
			}
			continue
		}
		r.count++
		r.dst = AppendText(r.dst, key)
		if err := r.value(depth + 1); err != nil {
			return err
		}
		n++
	}
}

func (r *jsonReader) takeField() error {
	t, err := r.token()
	if err != nil {
		return err
	}
	switch t.(type) {
	case string, json.Number:
		r.taken = t
		return nil
	}
	return malformed("the field %q is neither text nor a number", r.take)
}

// binary replaces the object at mark by bytes if it stands for bytes.
func (r *jsonReader) binary(mark int, keys map[string]struct{}) error {
	if _, ok := keys[base64Key]; !ok || len(keys) > 1 {
		return nil
	}
	v, _ := Value{r.dst[mark:]}.Field(base64Key)
	text, ok := v.Text()
	if !ok || v.Kind() != Binary {
		return malformed("%s is not text", base64Key)
	}
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return malformed("%s: %v", base64Key, err)
	}
	r.dst = AppendText(r.dst[:mark], raw)
	return nil
}
