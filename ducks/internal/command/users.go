package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"dalmatiner/access"
	"dalmatiner/ducks/internal/api"
)

// User are the commands of users.
type User struct {
	Create   UserCreate   `cmd:"" help:"Make a user. The password is read from standard input."`
	List     UserList     `cmd:"" help:"List all."`
	Password UserPassword `cmd:"" help:"Give a user another password, which ends the sessions of that user."`
	Delete   UserDelete   `cmd:"" help:"Take one away, with all sessions."`
}

// secretLine reads a password: a line of standard input, which a terminal does not show.
func secretLine(prompt string) (text string, err error) {
	if t, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS); err == nil {
		fmt.Fprint(os.Stderr, prompt)
		hidden := *t
		hidden.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(int(os.Stdin.Fd()), unix.TCSETS, &hidden); err != nil {
			return "", err
		}
		defer func() {
			fmt.Fprintln(os.Stderr)
			err = errors.Join(err, unix.IoctlSetTermios(int(os.Stdin.Fd()), unix.TCSETS, t))
		}()
	}
	line, err := bufio.NewReader(io.LimitReader(os.Stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("no password: type it, or give it as a line of standard input")
	}
	return line, nil
}

// UserCreate is a command.
type UserCreate struct {
	Server
	Name string      `arg:""`
	Role access.Role `required:"" enum:"viewer,operator,admin" help:"viewer looks, operator works, admin also says who may." placeholder:"ROLE"`

	To
}

// Run runs it.
func (c *UserCreate) Run(ctx context.Context, out io.Writer) error {
	text, err := secretLine("Password: ")
	if err == nil {
		_, err = c.do(ctx, out, "POST", "users", api.NewUser{
			Name:     c.Name,
			Role:     c.Role,
			Limited:  api.Limited(c.To),
			Password: text,
		}, nil)
	}
	return err
}

// UserList is a command.
type UserList struct{ Server }

// Run runs it.
func (c *UserList) Run(ctx context.Context, out io.Writer) error {
	var list []access.Identity
	if done, err := c.do(ctx, out, "GET", "users", nil, &list); done || err != nil {
		return err
	}
	return table(out, "USER\tROLE\tLIMITED TO", func(w io.Writer) {
		for _, u := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\n", u.Name, u.Role, scopesText(u.Scopes))
		}
	})
}

// UserPassword is a command.
type UserPassword struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *UserPassword) Run(ctx context.Context, out io.Writer) error {
	text, err := secretLine("New password: ")
	if err == nil {
		_, err = c.do(ctx, out, "PUT", object("users", c.Name, "password"), api.Password{Password: text},
			nil)
	}
	return err
}

// UserDelete is a command.
type UserDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *UserDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("users", c.Name, ""))
}

// Login is a command.
type Login struct {
	Server
	Name string `arg:"" help:"Of the user."`
}

// Run runs it. What it prints is a token for 12 hours.
func (c *Login) Run(ctx context.Context, out io.Writer) error {
	text, err := secretLine("Password: ")
	if err != nil {
		return err
	}
	s := c.Server
	s.Token = "none" // nobody has to be let in yet
	var of api.Session
	if done, err := s.do(ctx, out, "POST", "login", api.Login{Name: c.Name, Password: text},
		&of); done || err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, of.Secret)
	return err
}

// Logout is a command.
type Logout struct{ Server }

// Run runs it.
func (c *Logout) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "logout", nil, nil)
	return err
}
