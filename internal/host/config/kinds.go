package config

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// withOldName adds the original's name for the same thing.
func (k key) withOldName(old string) key {
	k.old = old
	return k
}

func textKey(name, def, help string, field func(*Config) *string) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error { *field(c) = text; return nil },
		get: func(c *Config) string { return *field(c) },
	}
}

func choiceKey(name, def string, choices []string, help string, field func(*Config) *string) key {
	k := textKey(name, def, help, field)
	k.set = func(c *Config, text string) error {
		if !slices.Contains(choices, text) {
			return fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		*field(c) = text
		return nil
	}
	return k
}

func addrKey(name, def, help string, field func(*Config) *string) key {
	k := textKey(name, def, help, field)
	k.set = func(c *Config, text string) error {
		err := checkAddr(text, def)
		if err == nil {
			*field(c) = text
		}
		return err
	}
	return k
}

// off is the value of an address nobody listens on. The field is empty then.
const off = "off"

// offAddrKey is an address that is off unless it is set.
func offAddrKey(name, example, help string, field func(*Config) *string) key {
	return key{name: name, def: off, help: help,
		set: func(c *Config, text string) error {
			if text == off || text == "" {
				*field(c) = ""
				return nil
			}
			err := checkAddr(text, example)
			if err != nil {
				return fmt.Errorf("%w, or %s", err, off)
			}
			*field(c) = text
			return nil
		},
		get: func(c *Config) string {
			if *field(c) == "" {
				return off
			}
			return *field(c)
		},
	}
}

func checkAddr(text, example string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("is no address, write host:port such as %s", example)
	}
	return checkPort(port)
}

// maxBucketName is the limit of the wire format.
const maxBucketName = 255

func bucketKey(name, def, help string, field func(*Config) *string) key {
	k := textKey(name, def, help, field)
	k.set = func(c *Config, text string) error {
		if len(text) < 1 || len(text) > maxBucketName {
			return fmt.Errorf("the name has %d bytes, want 1 to %d", len(text), maxBucketName)
		}
		*field(c) = text
		return nil
	}
	return k
}

// zoneKey is a time zone by its name in the system's list.
func zoneKey(name, def, help string, field func(*Config) **time.Location) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			zone, err := time.LoadLocation(text)
			if err != nil || text == "" {
				return fmt.Errorf("%q is no time zone that this system knows; UTC always is one", text)
			}
			*field(c) = zone
			return nil
		},
		get: func(c *Config) string { return (*field(c)).String() },
	}
}

// portKey is the original's way to set the port of an address. The original
// listened on every interface; we stay on the host of the address, and say so.
func portKey(name, addr string, field func(*Config) *string) key {
	return key{name: name, alters: addr,
		set: func(c *Config, text string) error {
			if err := checkPort(text); err != nil {
				return err
			}
			host, _, err := net.SplitHostPort(*field(c))
			if err != nil {
				return err
			}
			*field(c) = net.JoinHostPort(host, text)
			return nil
		},
		warn: func(c *Config, text string) string {
			host, _, _ := net.SplitHostPort(*field(c))
			if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
				return ""
			}
			return fmt.Sprintf("listens on %s only: write %s = 0.0.0.0:%s to be reached from other machines",
				host, addr, text)
		},
	}
}

func checkPort(text string) error {
	if n, err := strconv.ParseUint(text, 10, 16); err != nil || n > 65535 {
		return fmt.Errorf("the port must be between 0 and 65535")
	}
	return nil
}

func int64Key(name, def string, low, high int64, help string, field func(*Config) *int64) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			n, err := parseInt(text, low, high)
			if err == nil {
				*field(c) = n
			}
			return err
		},
		get: func(c *Config) string { return formatInt(*field(c)) },
	}
}

func intKey(name, def string, low, high int64, help string, field func(*Config) *int) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			n, err := parseInt(text, low, high)
			if err == nil {
				*field(c) = int(n)
			}
			return err
		},
		get: func(c *Config) string { return formatInt(int64(*field(c))) },
	}
}

func powerKey(name, def string, low, high int64, help string, field func(*Config) *int) key {
	k := intKey(name, def, low, high, help, field)
	k.set = func(c *Config, text string) error {
		n, err := parseInt(text, low, high)
		if err != nil {
			return err
		}
		if n&(n-1) != 0 {
			up := int64(1) << bits.Len64(uint64(n))
			return fmt.Errorf("must be a power of two, the next ones are %d and %d", up/2, up)
		}
		*field(c) = int(n)
		return nil
	}
	return k
}

func parseInt(text string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("must be a whole number from %d to %d", low, high)
	}
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("must be from %d to %d", low, high)
	}
	return n, nil
}

func sizeKey(name, def string, low, high int64, help string, field func(*Config) *int64) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			n, err := ParseSize(text)
			if err != nil {
				return err
			}
			if n < low {
				return fmt.Errorf("must be at least %s", FormatSize(low))
			}
			if n > high {
				return fmt.Errorf("must be at most %s", FormatSize(high))
			}
			*field(c) = n
			return nil
		},
		get: func(c *Config) string { return FormatSize(*field(c)) },
	}
}

// MemoryAuto stands for a share of the machine's memory.
const MemoryAuto = -1

const auto = "auto"

// memoryKey is a size, or auto, or off.
func memoryKey(name string, low int64, help string, field func(*Config) *int64) key {
	size := sizeKey(name, auto, low, math.MaxInt64, help, field)
	k := size
	k.set = func(c *Config, text string) error {
		switch text {
		case auto:
			*field(c) = MemoryAuto
		case off:
			*field(c) = 0
		default:
			if err := size.set(c, text); err != nil {
				return fmt.Errorf("%w, %s or %s", err, auto, off)
			}
		}
		return nil
	}
	k.get = func(c *Config) string {
		switch *field(c) {
		case MemoryAuto:
			return auto
		case 0:
			return off
		}
		return size.get(c)
	}
	return k
}

// MaxOpenFilesAuto stands for a share of the files that the system allows.
const MaxOpenFilesAuto = -1

// filesKey is a number of files, or auto.
func filesKey(name string, low int64, help string, field func(*Config) *int) key {
	return autoIntKey(name, low, math.MaxInt32, MaxOpenFilesAuto, help, field)
}

// autoIntKey is a number from low to high, or auto, which stands for a number outside of these.
func autoIntKey(name string, low, high int64, stands int, help string,
	field func(*Config) *int) key {
	number := intKey(name, auto, low, high, help, field)
	k := number
	k.set = func(c *Config, text string) error {
		if text == auto {
			*field(c) = stands
			return nil
		}
		if err := number.set(c, text); err != nil {
			return fmt.Errorf("%w, or %s", err, auto)
		}
		return nil
	}
	k.get = func(c *Config) string {
		if *field(c) == stands {
			return auto
		}
		return number.get(c)
	}
	return k
}

func durationKey(name, def string, low, high time.Duration, help string,
	field func(*Config) *time.Duration) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			d, err := ParseDuration(text)
			if err != nil {
				return err
			}
			if d < low || d > high {
				return fmt.Errorf("must be from %s to %s", FormatDuration(low), FormatDuration(high))
			}
			if d%time.Millisecond != 0 {
				return fmt.Errorf("must be whole milliseconds")
			}
			*field(c) = d
			return nil
		},
		get: func(c *Config) string { return FormatDuration(*field(c)) },
	}
}

func switchKey(name, def, help string, field func(*Config) *bool) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			on, err := ParseSwitch(text)
			if err == nil {
				*field(c) = on
			}
			return err
		},
		get: func(c *Config) string {
			if *field(c) {
				return "on"
			}
			return "off"
		},
	}
}

// ParseSwitch reads a yes or no: on, true, enabled, yes or off, false,
// disabled, no.
func ParseSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "on", "true", "enabled", "yes":
		return true, nil
	case "off", "false", "disabled", "no":
		return false, nil
	}
	return false, fmt.Errorf("must be on or off")
}

func pointsKey(name, def, help string, field func(*Config) *int64) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			if text == "infinity" || text == "inf" {
				*field(c) = 0
				return nil
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("must be a number of points from 1 up, or infinity")
			}
			*field(c) = n
			return nil
		},
		get: func(c *Config) string {
			if *field(c) == 0 {
				return "infinity"
			}
			return formatInt(*field(c))
		},
	}
}

func setCachePoints(c *Config, text string) error {
	n, err := parseInt(text, 1, 1<<31-1)
	if err == nil {
		c.CachePoints = int(min(n, maxCachePoints))
	}
	return err
}

// warnCachePoints reports the cut to one chunk: the original had no limit, and
// an old file should start.
func warnCachePoints(_ *Config, text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n <= maxCachePoints {
		return ""
	}
	return fmt.Sprintf("more than the limit of %d, which is used", maxCachePoints)
}
