package node

import (
	"os"
	"os/signal"
	"syscall"

	"dalmatiner/internal/ingest/scrape"
)

// startScraper begins to scrape the targets of scrape.config, and reads it anew at each SIGHUP.
func (n *node) startScraper() (err error) {
	if n.cfg.ScrapeConfig == "" {
		return nil
	}
	n.scraper, err = scrape.Start(scrape.Options{
		File: n.cfg.ScrapeConfig, Bucket: n.cfg.ScrapeBucket, Writers: n.newWriters(scrape.Listener),
		Memory: n.store.Memory(), Registry: n.figures, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	n.hangups = make(chan os.Signal, 1)
	signal.Notify(n.hangups, syscall.SIGHUP)
	go func() {
		for range n.hangups {
			if err := n.scraper.Reload(); err != nil {
				n.logger.Error("the configuration before stays in force", "err", err)
			}
		}
	}()
	return nil
}

// scrapeBucket is the bucket of what is scraped, empty where nothing is.
func (n *node) scrapeBucket() string {
	if n.scraper == nil {
		return ""
	}
	return n.cfg.ScrapeBucket
}

// stopScraper returns when no scrape is under way, and what was scraped is stored.
func (n *node) stopScraper() {
	if n.scraper == nil {
		return
	}
	signal.Stop(n.hangups)
	close(n.hangups)
	n.scraper.Close()
}
