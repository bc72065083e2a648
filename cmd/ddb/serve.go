package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
)

// process is what serve needs of the world around it.
type process struct {
	// run runs a node until ctx is cancelled and everything is durable. It
	// calls ready once, with the addresses that it listens on.
	run func(ctx context.Context, cfg config.Config, logger *slog.Logger,
		ready func(tcpAddr, httpAddr string)) error
	signals <-chan os.Signal
	exit    func(code int)
	errOut  io.Writer
}

// notify returns the signals that stop a node.
func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

func execute(args []string, out, errOut io.Writer, p process) int {
	p.errOut = errOut
	return admin.Execute(context.Background(), "ddb", description, config.BuildVersion(), &grammar{},
		args, out, errOut, &p)
}

// settings are the flags that say how a node is configured.
type settings struct {
	Config   string   `help:"Configuration file, key = value; the original's ddb.conf is understood. None is needed." placeholder:"FILE"`
	Set      []string `help:"Override one key of the configuration; ddb config show --all lists them." placeholder:"KEY=VALUE" sep:"none"`
	DataDir  string   `help:"Directory of everything the node keeps (data_dir, ./data)." placeholder:"DIR"`
	TCPAddr  string   `name:"tcp-addr" help:"Address of the binary protocol (tcp.addr, 127.0.0.1:5555)." placeholder:"HOST:PORT"`
	HTTPAddr string   `name:"http-addr" help:"Address of queries, admin and metrics (http.addr, 127.0.0.1:8080)." placeholder:"HOST:PORT"`
	LogLevel string   `help:"Least severe log line: debug, info, warn or error (log.level, info)." placeholder:"LEVEL"`
}

// load returns the effective configuration and what it warns about. Flags win
// over --set, --set over the file, the file over defaults.
func (s *settings) load() (config.Config, []string, error) {
	var (
		all  []config.Setting
		errs []error
	)
	if s.Config != "" {
		text, err := os.ReadFile(s.Config)
		if err != nil {
			return config.Config{}, nil, &admin.UsageError{Err: err}
		}
		file, err := config.ParseFile(s.Config, text)
		all, errs = append(all, file...), append(errs, err)
	}
	for _, arg := range s.Set {
		one, err := config.ParseSet(arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, one)
	}
	for _, flag := range []struct{ name, key, value string }{
		{"--data-dir", "data_dir", s.DataDir},
		{"--tcp-addr", "tcp.addr", s.TCPAddr},
		{"--http-addr", "http.addr", s.HTTPAddr},
		{"--log-level", "log.level", s.LogLevel},
	} {
		if flag.value != "" {
			all = append(all, config.Setting{Origin: flag.name, Key: flag.key, Value: flag.value})
		}
	}
	cfg, warnings, err := config.Build(all...)
	if err = errors.Join(append(errs, err)...); err != nil {
		return config.Config{}, nil, &admin.UsageError{Err: err}
	}
	cfg.Version = config.BuildVersion()
	return cfg, warnings, nil
}

type serveCommand struct {
	settings `embed:""`
}

// Help is shown below the usage of the command.
func (c *serveCommand) Help() string {
	return `A node needs no configuration: it keeps its data in ./data, takes points on
127.0.0.1:5555, and answers queries on 127.0.0.1:8080. SIGTERM or SIGINT makes
everything durable and ends it; a further SIGINT ends it at once.

Examples:
  ddb serve
  ddb serve --data-dir /var/lib/ddb --tcp-addr 0.0.0.0:5555
  ddb serve --config /etc/ddb.conf --set wal.sync=always`
}

// Run runs a node until a signal or a failure stops it.
func (c *serveCommand) Run(p *process) error {
	cfg, warnings, err := c.load()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return &admin.UsageError{Err: err}
	}
	logger := slog.New(slog.NewTextHandler(p.errOut, &slog.HandlerOptions{Level: level}))
	for _, w := range warnings {
		logger.Warn("configuration", "warning", w)
	}
	logger.Info("starting", "version", cfg.Version, "data_dir", cfg.DataDir, "pid", os.Getpid())
	err = p.supervise(logger, func(ctx context.Context) error {
		return p.run(ctx, cfg, logger, func(tcpAddr, httpAddr string) {
			logger.Info("ready", "tcp_addr", tcpAddr, "http_addr", httpAddr)
		})
	})
	if err != nil {
		return err
	}
	logger.Info("stopped, everything is on disk")
	return nil
}

var errKilled = errors.New("stopped at once by a second interrupt: what the log holds is " +
	"replayed at the next start")

// supervise calls run and cancels its context at the first signal. A further
// interrupt ends the process without waiting for run.
func (p *process) supervise(logger *slog.Logger, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		return err
	case sig := <-p.signals:
		logger.Info("stopping: making everything durable; an interrupt stops at once", "signal",
			sig.String())
		cancel()
	}
	for {
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case sig := <-p.signals:
			// Supervisors repeat SIGTERM, and some send it to the whole group as
			// well; only a person who presses Ctrl-C again wants no waiting.
			if sig == os.Interrupt {
				logger.Error(errKilled.Error())
				p.exit(admin.ExitFailed)
				return errKilled
			}
		}
	}
}
