package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/agent"
)

type stopCommand struct {
	Targets bool   `required:"" help:"End tgtd, which serve leaves when it stops: all devices lose their disks."`
	DataDir string `name:"data-dir" required:"" help:"That of serve, which does not run." placeholder:"DIR"`
	JSON    bool   `name:"json" help:"Print the outcome as JSON."`
}

func (c *stopCommand) Run(ctx context.Context, out io.Writer) error {
	sessions, ran, err := agent.StopTargets(ctx, c.DataDir)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(out).Encode(map[string]any{"ran": ran, "sessions": sessions})
	case !ran:
		_, err = fmt.Fprintf(out, "no tgtd of %s runs\n", c.DataDir)
	default:
		_, err = fmt.Fprintf(out, "tgtd has ended, and with it %d sessions\n", sessions)
	}
	return err
}
