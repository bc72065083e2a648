// Program bench measures a room of diskless machines, which are emulated. It needs root.
//
//	go run ./bench           the whole load, some five minutes
//	go run ./bench -quick    short loads
//
// The page and its figures in Go's benchmark format are named after the commit that is measured,
// as those of the store's bench are.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/ducks/bench/room"
)

// Servers die with the thread that started them: it must live as long as the program.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	env := server.Env{Log: os.Stderr}
	flag.StringVar(&env.Bin, "bin", "../bin", "`directory` of the built programs")
	flag.StringVar(&env.Dir, "dir", os.TempDir(), "`directory` for a temporary one")
	results := flag.String("results", "",
		"`directory` to write the results to; bench/results, with -quick bench/trial")
	quick := flag.Bool("quick", false, "short loads")
	flag.Parse()
	if *results == "" {
		*results = "bench/results"
		if *quick {
			*results = "bench/trial"
		}
	}
	if done, err := room.Alone(context.Background()); done {
		return err
	}
	return env.Inside(room.Space, func(ctx context.Context) error {
		return measureRoom(ctx, &env, *quick, *results)
	})
}

// measureRoom measures a room, prints the page and writes it with its figures.
func measureRoom(ctx context.Context, env *server.Env, quick bool, results string) error {
	t := &report.Table{Head: report.Head{Machine: measure.Look(env.Bin), Begun: time.Now()}}
	if err := room.Run(ctx, env, quick, t); err != nil {
		return err
	}
	var page bytes.Buffer
	t.Render(&page)
	if _, err := os.Stdout.Write(page.Bytes()); err != nil {
		return err
	}
	path, err := report.Save(results, &t.Head, "ducks", page.Bytes(), t.Benchmarks())
	if err == nil {
		fmt.Fprintln(os.Stderr, "written to", path)
	}
	return err
}
