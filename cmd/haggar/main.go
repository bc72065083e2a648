// Haggar sends metrics to a store: see haggar -h and haggar.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
)

// Exit codes.
const (
	exitErrors = 1
	exitUsage  = 2
)

func main() { os.Exit(run()) }

func run() int {
	c, journal, err := haggar.ParseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	toggle := make(chan os.Signal, 1)
	signal.Notify(toggle, syscall.SIGUSR1)
	c.Toggle = toggle
	c.Progress = os.Stderr
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(os.Stderr, "haggar: sends to %s, bucket %s: %s\n", c.Addr, c.Bucket,
		receiver(ctx, c.Addr))
	if journal == "" {
		return send(ctx, c)
	}
	f, err := os.Create(journal)
	if err != nil {
		fmt.Fprintf(os.Stderr, "haggar: create the journal: %v\n", err)
		return exitErrors
	}
	c.Journal = f
	code := send(ctx, c)
	if err := f.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "haggar: close the journal: %v\n", err)
		return exitErrors
	}
	return code
}

// receiver says which node listens on a TCP address, as far as the node at the default HTTP address
// of the same host, or at DDB_ADDR, tells.
func receiver(ctx context.Context, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err.Error()
	}
	node := admin.Client{Addr: cmp.Or(os.Getenv("DDB_ADDR"), net.JoinHostPort(host, "8080"))}
	status, who := node.Who(ctx)
	_, listens, err := net.SplitHostPort(status.TCPAddr)
	if who == "" || err != nil || listens != port {
		return "no node at " + node.Addr +
			" says that this port is its own; DDB_ADDR names the HTTP address of another"
	}
	return who
}

// send runs and prints the summary.
func send(ctx context.Context, c haggar.Config) int {
	s, err := haggar.Run(ctx, c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "haggar: %v\n", err)
		return exitErrors
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		fmt.Fprintf(os.Stderr, "haggar: print the summary: %v\n", err)
		return exitErrors
	}
	if s.Errors > 0 {
		return exitErrors
	}
	return 0
}
