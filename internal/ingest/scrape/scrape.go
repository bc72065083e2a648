// Package scrape fetches the figures of targets as Prometheus does, from the same configuration
// file. It is the one wrapper around Prometheus' packages scrape, discovery and config, which find
// the targets, fetch and parse what they say, and relabel it. DESIGN.md says what is ours.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/dns"  // dns_sd_configs
	_ "github.com/prometheus/prometheus/discovery/file" // file_sd_configs
	_ "github.com/prometheus/prometheus/discovery/http" // http_sd_configs
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/logging"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/acked"
)

// Listener is the name under which the account counts what was refused.
const Listener = "scrape"

// Options configure a Scraper. All are required.
type Options struct {
	File     string // the configuration, as Prometheus reads it
	Bucket   string // that the points go into
	Writers  *acked.Writers
	Memory   *memory.Budget
	Registry prometheus.Registerer // takes the figures of Prometheus' packages
	Logger   *slog.Logger
}

// Scraper fetches the targets of a configuration until Close. Its methods may be called
// concurrently.
type Scraper struct {
	o         Options
	targets   *scrape.Manager
	discovery *discovery.Manager
	running   sync.WaitGroup
	cancel    context.CancelFunc

	mu     sync.Mutex // one reload at a time
	closed bool
}

// Start reads the configuration and begins to scrape. An error names what is wrong with the
// file. Close must be called.
func Start(o Options) (*Scraper, error) {
	s := &Scraper{o: o}
	cfg, err := s.read()
	if err != nil {
		return nil, err
	}
	sdFigures, err := discovery.CreateAndRegisterSDMetrics(o.Registry)
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.discovery = discovery.NewManager(ctx, o.Logger, o.Registry, sdFigures,
		discovery.Name("scrape"))
	if s.discovery == nil { // it has logged why
		cancel()
		return nil, errors.New("scrape: the discovery of targets does not start")
	}
	s.targets, err = scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true}, o.Logger,
		logging.NewJSONFileLogger, nil, newIntake(&s.o), o.Registry)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("scrape: %w", err)
	}
	s.running.Go(func() {
		if err := s.discovery.Run(); err != nil && !errors.Is(err, context.Canceled) {
			o.Logger.Error("the discovery of targets ended", "err", err)
		}
	})
	if err := s.apply(cfg); err != nil {
		s.Close()
		return nil, err
	}
	s.running.Go(func() {
		if err := s.targets.Run(s.discovery.SyncCh()); err != nil {
			o.Logger.Error("scraping ended", "err", err)
		}
	})
	return s, nil
}

// Close ends all scrapes and returns when none is under way. Points of scrapes that have ended
// are stored.
func (s *Scraper) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cancel()
	s.targets.Stop()
	s.running.Wait()
}

var errClosed = errors.New("scrape: scraping has ended, the node is stopping")

// Reload reads the configuration anew. After an error the one before stays in force.
func (s *Scraper) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	cfg, err := s.read()
	if err != nil {
		return err
	}
	if err := s.apply(cfg); err != nil {
		return err
	}
	s.o.Logger.Info("scrape.config is read anew", "file", s.o.File)
	return nil
}

// read reads the file, and logs what of it has no effect here.
func (s *Scraper) read() (*config.Config, error) {
	cfg, err := config.LoadFile(s.o.File, false, s.o.Logger)
	if err != nil {
		if strings.Contains(err.Error(), "_sd_configs not found") {
			err = fmt.Errorf("%w; of the discoveries there are static_configs, file_sd_configs, "+
				"http_sd_configs and dns_sd_configs", err)
		}
		return nil, fmt.Errorf("scrape.config: %w", err)
	}
	limitBodies(cfg)
	if idle := sectionsWithout(cfg); len(idle) > 0 {
		s.o.Logger.Warn("sections of scrape.config have no effect: only what is scraped is read",
			"file", s.o.File, "sections", strings.Join(idle, ", "))
	}
	return cfg, nil
}

// bodyLimit is the body_size_limit of jobs that have none: Prometheus would read any number of
// bytes into memory.
const bodyLimit = 64 << 20

func limitBodies(cfg *config.Config) {
	if cfg.GlobalConfig.BodySizeLimit == 0 {
		cfg.GlobalConfig.BodySizeLimit = bodyLimit // for the jobs of scrape_config_files
	}
	for _, job := range cfg.ScrapeConfigs {
		if job.BodySizeLimit == 0 {
			job.BodySizeLimit = cfg.GlobalConfig.BodySizeLimit
		}
	}
}

// sectionsWithout returns the names of the sections of a file that have no effect.
func sectionsWithout(cfg *config.Config) (names []string) {
	for _, section := range []struct {
		name  string
		there bool
	}{
		{"rule_files", len(cfg.RuleFiles) > 0},
		{"alerting", len(cfg.AlertingConfig.AlertmanagerConfigs) > 0},
		{"remote_write", len(cfg.RemoteWriteConfigs) > 0},
		{"remote_read", len(cfg.RemoteReadConfigs) > 0},
		{"global.external_labels", !cfg.GlobalConfig.ExternalLabels.IsEmpty()},
	} {
		if section.there {
			names = append(names, section.name)
		}
	}
	return names
}

// apply puts a configuration in force. The jobs come first: targets of a job that is not known
// are an error.
func (s *Scraper) apply(cfg *config.Config) error {
	if err := s.targets.ApplyConfig(cfg); err != nil {
		return fmt.Errorf("scrape.config: %w", err)
	}
	jobs, err := cfg.GetScrapeConfigs()
	if err != nil {
		return fmt.Errorf("scrape.config: %w", err)
	}
	found := make(map[string]discovery.Configs, len(jobs))
	for _, job := range jobs {
		found[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := s.discovery.ApplyConfig(found); err != nil {
		return fmt.Errorf("scrape.config: %w", err)
	}
	return nil
}
