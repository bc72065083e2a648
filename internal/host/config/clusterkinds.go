package config

import (
	"fmt"
	"net"
	"strings"
)

// inCluster says that the key changes nothing without cluster.listen.
func (k key) inCluster() key {
	k.cluster = true
	return k
}

// none is the value of a text that is not set. The field is empty then.
const none = "none"

// noneKey is a text that is not set by default.
func noneKey(name, help string, field func(*Config) *string) key {
	return key{name: name, def: none, help: help,
		set: func(c *Config, text string) error {
			if text == none {
				text = ""
			}
			*field(c) = text
			return nil
		},
		get: func(c *Config) string {
			if *field(c) == "" {
				return none
			}
			return *field(c)
		},
	}
}

// autoAddrKey is an address that follows from another one by default. The field is empty then.
func autoAddrKey(name, example, help string, field func(*Config) *string) key {
	return key{name: name, def: auto, help: help,
		set: func(c *Config, text string) error {
			if text == auto {
				*field(c) = ""
				return nil
			}
			if err := checkAddr(text, example); err != nil {
				return fmt.Errorf("%w, or %s", err, auto)
			}
			*field(c) = text
			return nil
		},
		get: func(c *Config) string {
			if *field(c) == "" {
				return auto
			}
			return *field(c)
		},
	}
}

// maxSeeds is how many addresses to join are taken: one that answers is enough.
const maxSeeds = 100

// listKey is a list of addresses or hosts, separated by commas.
func listKey(name, help string, field func(*Config) *[]string) key {
	return key{name: name, def: none, help: help,
		set: func(c *Config, text string) error {
			if text == none {
				*field(c) = nil
				return nil
			}
			var list []string
			for addr := range strings.SplitSeq(text, ",") {
				addr = strings.TrimSpace(addr)
				if _, port, err := net.SplitHostPort(addr); err == nil {
					if err := checkPort(port); err != nil {
						return fmt.Errorf("%s: %w", addr, err)
					}
				} else if addr == "" || strings.ContainsAny(addr, " /") || strings.Count(addr, ":") == 1 {
					return fmt.Errorf("%q is no host and no host:port, write for example 10.0.0.1:8600, ddb2:8600",
						addr)
				}
				list = append(list, addr)
			}
			if len(list) > maxSeeds {
				return fmt.Errorf("has %d addresses, at most %d are taken: one that answers is enough",
					len(list), maxSeeds)
			}
			*field(c) = list
			return nil
		},
		get: func(c *Config) string {
			if len(*field(c)) == 0 {
				return none
			}
			return strings.Join(*field(c), ",")
		},
	}
}

// secretKey is a text that is never shown.
func secretKey(name, help string, field func(*Config) *Secret) key {
	return key{name: name, def: none, help: help, secret: true,
		set: func(c *Config, text string) error {
			if text == none {
				text = ""
			}
			*field(c) = Secret{text}
			return nil
		},
		get: func(c *Config) string { return field(c).String() },
	}
}

// maxQuorum is the most copies that a ring has.
const maxQuorum = 15

// quorumKey is a number of copies, or auto. Cluster.check refuses one that would be a promise of
// copies that are not kept.
func quorumKey(name, help string, field func(*Config) *int) key {
	k := autoIntKey(name, 1, maxQuorum, 0, help, field)
	return k.inCluster()
}
