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

type userCommands struct {
	Create   userCreate   `cmd:"" help:"Make a user. The password is read from standard input."`
	List     userList     `cmd:"" help:"List all."`
	Password userPassword `cmd:"" help:"Give a user another password, which ends the sessions of that user."`
	Delete   userDelete   `cmd:"" help:"Take one away, with all sessions."`
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

type userCreate struct {
	named
	Role access.Role `required:"" enum:"viewer,operator,admin" help:"viewer looks, operator works, admin also says who may." placeholder:"ROLE"`

	To
}

func (c *userCreate) Run(ctx context.Context, out io.Writer) error {
	text, err := secretLine("Password: ")
	if err != nil {
		return err
	}
	return c.send(ctx, out, "POST", "users", api.NewUser{
		Name:     c.Name,
		Role:     c.Role,
		Limited:  api.Limited(c.To),
		Password: text,
	})
}

type userList struct{ Server }

func (c *userList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "users", "USER\tROLE\tLIMITED TO",
		func(w io.Writer, u *access.Identity) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", u.Name, u.Role, scopesText(u.Scopes))
		})
}

type userPassword struct{ named }

func (c *userPassword) Run(ctx context.Context, out io.Writer) error {
	text, err := secretLine("New password: ")
	if err != nil {
		return err
	}
	return c.send(ctx, out, "PUT", object("users", c.Name, "password"), api.Password{Password: text})
}

type userDelete struct{ named }

func (c *userDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("users", c.Name, ""))
}

type loginCommand struct {
	Server
	Name string `arg:"" help:"Of the user."`
}

// Run prints a token for 12 hours.
func (c *loginCommand) Run(ctx context.Context, out io.Writer) error {
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

type logoutCommand struct{ Server }

func (c *logoutCommand) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "logout", nil)
}
