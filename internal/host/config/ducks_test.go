package config

import "testing"

// Passwords cross no network in clear.
func TestDucksURL(t *testing.T) {
	for address, good := range map[string]bool{
		"http://127.0.0.1:8091": true, "http://[::1]:8091/": true, "http://localhost:8091": true,
		"https://ducks.example.org": true,
		"http://192.0.2.1:8091":     false, "http://ducks.example.org": false, "127.0.0.1:8091": false,
		"ftp://127.0.0.1":      false,
		"http://127.0.0.1/api": false, "http://a:b@127.0.0.1": false, "http://127.0.0.1?x=1": false,
		"http://": false, "://": false,
	} {
		if _, err := ducksURL(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}
