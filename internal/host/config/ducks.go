package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Ducks is the ducks whose rooms the page shows.
type Ducks struct {
	URL *url.URL // ducks.url; nil for none
	CA  string   // ducks.ca, a file; empty for those of the system
}

// ducksURL reads the address of a ducks. http is for loopback: what lets somebody in would cross
// the network in clear.
func ducksURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("must be a URL such as http://127.0.0.1:8091 or "+
			"https://ducks.example.org:8091, or %s", none)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" &&
		(err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("must be https unless it is a loopback address: passwords would cross " +
			"the network in clear")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// ducksURLKey is the address of a ducks, none by default.
func ducksURLKey(name, help string, field func(*Config) **url.URL) key {
	return key{name: name, def: none, help: help,
		set: func(c *Config, text string) (err error) {
			if text == none {
				*field(c) = nil
				return nil
			}
			*field(c), err = ducksURL(text)
			return err
		},
		get: func(c *Config) string {
			if *field(c) == nil {
				return none
			}
			return (*field(c)).String()
		},
	}
}
