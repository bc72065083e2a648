// Package demo writes example data into a running node, through the ports that senders and
// operators use.
package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"dalmatiner/client"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/demo/shop"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/wire"
)

// Commands is the command tree of ddb demo.
type Commands struct {
	Shop ShopCommand `cmd:"" help:"Make bucket shop, which the examples of docs/dql.md read."`
}

// ShopCommand makes bucket shop.
type ShopCommand struct {
	admin.Target `embed:""`
	admin.Output `embed:""`
	TCP          string `name:"tcp" placeholder:"HOST:PORT" help:"Address for points, if not the one that the node names."`
}

// Help is shown below the usage of the command.
func (c *ShopCommand) Help() string {
	return `The bucket has an hour of points up to 2026-11-20 12:00:00 UTC, and ten seconds
more, with tags in the collections fleet and disks and with events. Run twice, the
command changes nothing. It refuses to write into a bucket of that name that holds
anything else.

Remove it with ddb admin buckets delete shop --yes.`
}

// made is what the command wrote.
type made struct {
	Bucket  string `json:"bucket"`
	Created bool   `json:"created"` // false: it was there already
	Series  int    `json:"series"`
	Points  int    `json:"points"` // that were not there
	Tagged  int64  `json:"tagged_series"`
	Events  int    `json:"events"`
}

// Run writes the bucket and prints what it holds.
func (c *ShopCommand) Run(env *admin.Env) error {
	all, err := shop.All()
	if err != nil {
		return err
	}
	node := &admin.Client{Addr: c.Addr, Tell: env.Err}
	status, err := node.Status(env.Context)
	if err != nil {
		return err
	}
	if c.TCP == "" {
		c.TCP = pointsAddr(status.TCPAddr, c.Addr)
	}
	points, err := client.Dial(env.Context, c.TCP)
	if err != nil {
		return fmt.Errorf("%w; name the address that takes points with --tcp", err)
	}
	defer points.Close()
	out := made{Bucket: shop.Bucket, Series: len(all), Events: len(shop.Events)}
	if out.Created, err = claim(env.Context, node, points, all); err != nil {
		return err
	}
	if err := sendEvents(env.Context, points); err != nil {
		return err
	}
	if out.Points, err = sendPoints(points, all); err != nil {
		return err
	}
	tagged, err := node.ImportTags(env.Context, strings.NewReader(shop.Tags()))
	if err == nil && tagged.Refused > 0 {
		err = fmt.Errorf("the node refused tags: %s", tagged.Errors[0].Error)
	}
	if err != nil {
		return err
	}
	out.Tagged = tagged.Lines
	return c.Write(env, &out, out.write)
}

// pointsAddr returns where the node at addr takes points. Of an address that only the node's
// own machine can reach, or that stands for all of its addresses, the port counts.
func pointsAddr(tcp, addr string) string {
	host, port, err := net.SplitHostPort(tcp)
	if err != nil {
		return tcp
	}
	at, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return net.JoinHostPort(at, port)
	}
	return tcp
}

// claim creates the bucket, or checks that the bucket of its name holds only the shop's points,
// and takes those out of all.
func claim(
	ctx context.Context, node *admin.Client, points *client.Client, all []shop.Series,
) (created bool, err error) {
	list, err := node.Buckets(ctx)
	if err != nil {
		return false, err
	}
	want := admin.Bucket{Name: shop.Bucket, Resolution: shop.Resolution, PPF: 604800}
	for i := range list {
		b := &list[i]
		if b.Name != shop.Bucket {
			continue
		}
		if b.Resolution != want.Resolution || b.HPTS || b.TTL != 0 {
			return false, fmt.Errorf("%w: its resolution, lifetime or timestamps are others", errForeign)
		}
		return false, onlyShop(ctx, points, all)
	}
	_, err = node.CreateBucket(ctx, want)
	return true, err
}

var errForeign = fmt.Errorf("there is a bucket %s that this command did not make", shop.Bucket)

// onlyShop checks that the bucket has no other series than the shop's, and no other points in
// their slots. It takes the points that are there out of all.
func onlyShop(ctx context.Context, points *client.Client, all []shop.Series) error {
	names, err := points.List(ctx, shop.Bucket)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(all))
	for i := range all {
		known[string(all[i].Key)] = true
	}
	for _, name := range names {
		if !known[name] {
			return fmt.Errorf("%w: it holds %s", errForeign, metric.Text([]byte(name)))
		}
	}
	for i := range all {
		s := &all[i]
		have, err := points.Get(ctx, shop.Bucket, s.Key, s.Slot, len(s.Words))
		if err != nil {
			return err
		}
		for n, w := range have {
			if w != point.Unset && w != s.Words[n] {
				return fmt.Errorf("%w: %s has other points", errForeign, s.Metric)
			}
			if w != point.Unset {
				s.Words[n] = point.Unset
			}
		}
	}
	return nil
}

func sendEvents(ctx context.Context, to *client.Client) error {
	var list []wire.Event
	for _, e := range shop.Events {
		at, err := e.Nanoseconds()
		if err != nil {
			return err
		}
		body, err := term.AppendFromJSON(nil, []byte(e.JSON))
		if err != nil {
			return err
		}
		list = append(list, wire.Event{Time: uint64(at), Term: body})
	}
	return to.WriteEvents(ctx, shop.Bucket, list)
}

// sendPoints sends the points in the order of their times, and returns how many there are, once
// all are durable. The connection is a stream then.
func sendPoints(to *client.Client, all []shop.Series) (int, error) {
	s, err := to.OpenAckStream(shop.Bucket)
	if err != nil {
		return 0, err
	}
	for slot := int64(shop.Start - shop.Hour); slot < shop.Start+shop.Hour; slot++ {
		for i := range all {
			n := slot - all[i].Slot
			if n < 0 || n >= int64(len(all[i].Words)) || all[i].Words[n] == point.Unset {
				continue
			}
			if err := s.Point(all[i].Key, slot, all[i].Words[n]); err != nil {
				return 0, err
			}
		}
	}
	if _, err := s.FlushAck(); err != nil {
		return 0, err
	}
	ack, err := s.ReadAck()
	if err == nil && ack.Refused > 0 {
		err = fmt.Errorf("the node refused %d of %d points; ddb admin account says why",
			ack.Refused, ack.Received)
	}
	return int(ack.Received), err
}

func (m *made) write(w io.Writer) error {
	var b bytes.Buffer
	if !m.Created {
		fmt.Fprintf(&b, "Bucket %s was there already; %d points were missing.\n", m.Bucket, m.Points)
	} else {
		fmt.Fprintf(&b, "Made bucket %s: %d points of %d series, tags of %d of them, %d events.\n",
			m.Bucket, m.Points, m.Series, m.Tagged, m.Events)
	}
	b.WriteString(`
Try:
  ddb query 'SELECT sum(cart.hits BUCKET shop, 10m) BEFORE "2026-11-20 12:00" FOR 1h'
  ddb query 'SELECT avg(hosts.*.lat BUCKET shop, 10m) AS $2 BEFORE "2026-11-20 12:00" FOR 1h'
  ddb query 'SELECT requests FROM fleet WHERE site = eu AFTER "2026-11-20 12:00" FOR 10s'
docs/dql.md explains the language with this data.
`)
	_, err := w.Write(b.Bytes())
	return err
}
