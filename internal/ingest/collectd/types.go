package collectd

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// single is the name of the data source of types that have only one.
const single = "value"

// Types are the names of the data sources of types, which the binary protocol does not carry.
type Types struct {
	byKind  map[string][][]byte
	single  [][]byte
	unknown [][]byte // value0, value1 …
}

// maxValues is how many values a part of a packet can hold: a part has at most 65535 bytes.
const maxValues = (1<<16 - 1 - partHeader - 2) / valueBytes

// NewTypes returns the types of collectd 5.12 with other data sources than one of the name value,
// and those of a text in the form of types.db (collectd.org/documentation/manpages/types.db), which
// come first.
func NewTypes(db []byte) (*Types, error) {
	t := &Types{byKind: map[string][][]byte{}, single: [][]byte{[]byte(single)}}
	for i := range maxValues {
		t.unknown = append(t.unknown, strconv.AppendInt([]byte(single), int64(i), 10))
	}
	for line := range strings.Lines(known) {
		fields := strings.Fields(line)
		for _, name := range fields[1:] {
			t.byKind[fields[0]] = append(t.byKind[fields[0]], []byte(name))
		}
	}
	number := 0
	for line := range bytes.Lines(db) {
		number++
		line, _, _ = bytes.Cut(line, []byte{'#'})
		fields := bytes.FieldsFunc(line, func(r rune) bool {
			return r == ' ' || r == '\t' || r == ',' || r == '\n' || r == '\r'
		})
		if len(fields) == 0 {
			continue
		}
		var names [][]byte
		for _, source := range fields[1:] {
			name, _, ok := bytes.Cut(source, []byte{':'})
			if !ok || len(name) == 0 {
				return nil, fmt.Errorf("line %d: a data source is name:TYPE:min:max, not %.80q", number,
					source)
			}
			names = append(names, name)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("line %d: type %.80q has no data source", number, fields[0])
		}
		t.byKind[string(fields[0])] = names
	}
	return t, nil
}

// names returns the names of n values of a type. Values of a type that is not known, or that has
// another number of them, are value0 and so on; one alone is value.
func (t *Types) names(kind []byte, n int) [][]byte {
	if names := t.byKind[string(kind)]; len(names) == n {
		return names
	}
	if n == 1 {
		return t.single
	}
	return t.unknown[:n]
}

// known are types and their data sources.
const known = `arc_counts demand_data demand_metadata prefetch_data prefetch_metadata
arc_l2_bytes read write
arc_size current target minlimit maxlimit
compression uncompressed compressed
df used free
disk_io_time io_time weighted_io_time
disk_latency read write
disk_merged read write
disk_octets read write
disk_ops read write
disk_time read write
dns_octets queries responses
domain_state state reason
duration seconds
ib_octets rx tx
ib_packets rx tx
if_dropped rx tx
if_errors rx tx
if_octets rx tx
if_packets rx tx
io_octets rx tx
io_ops read write
io_packets rx tx
load shortterm midterm longterm
memcached_octets rx tx
mysql_octets rx tx
mysql_qcache hits inserts not_cached lowmem_prunes queries_in_cache
mysql_threads running connected cached created
node_octets rx tx
ps_count processes threads
ps_cputime user syst
ps_disk_octets read write
ps_disk_ops read write
ps_pagefaults minflt majflt
serial_octets rx tx
smart_attribute current worst threshold pretty
vf_broadcast vf_value
vf_bytes vf_rx vf_tx
vf_dropped vf_rx vf_tx
vf_link_info vf_value
vf_multicast vf_value
vf_packets vf_rx vf_tx
vmpage_faults minflt majflt
vmpage_io in out
voltage_threshold value threshold
`
