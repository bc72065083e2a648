package corpus

import (
	"bytes"
	"context"
	"os/exec"
)

// Compressed returns the number of bytes that a program for compression, which
// reads standard input, makes of the columns of a corpus.
func Compressed(ctx context.Context, c *Corpus, program string, args ...string) (int, error) {
	plain, err := Plain(c)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "-c")...)
	cmd.Stdin = bytes.NewReader(plain)
	out, err := cmd.Output()
	return len(out), err
}
