package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFile is the largest file ParseFile takes. The original's file with all
// its comments has about 30 KB.
const maxFile = 1 << 20

// ParseFile reads the text of a configuration file. name stands in the origins
// and errors. It returns the settings in the order of the file, or all lines
// that are not of the form "key = value", joined.
//
// A # at the start of a line or after a blank starts a comment. Neither keys
// nor values are checked here: Build does that.
func ParseFile(name string, text []byte) ([]Setting, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d: is it a configuration file?", name,
			len(text), maxFile)
	}
	var (
		out  []Setting
		errs []error
	)
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(stripComment(line))
		if line == "" {
			continue
		}
		origin := fmt.Sprintf("%s:%d", name, i+1)
		s, err := parseSetting(origin, line)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

// ParseSet reads one --set argument, key=value.
func ParseSet(arg string) (Setting, error) { return parseSetting("--set", arg) }

func parseSetting(origin, text string) (Setting, error) {
	key, value, found := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !utf8.ValidString(text):
		return Setting{}, fmt.Errorf("%s: %q is not UTF-8 text", origin, text)
	case !found:
		return Setting{}, fmt.Errorf("%s: %q has no =, write key = value", origin, text)
	case key == "":
		return Setting{}, fmt.Errorf("%s: %q has no key before =, write key = value", origin, text)
	case value == "":
		return Setting{}, fmt.Errorf("%s: %s has no value: leave the line out to use the default", origin,
			key)
	}
	return Setting{Origin: origin, Key: key, Value: value}, nil
}

func stripComment(line string) string {
	for i := 0; i < len(line); i++ {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}
