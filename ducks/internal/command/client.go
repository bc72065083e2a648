package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"dalmatiner/access/trust"
)

// Server is which ducks a command speaks to.
type Server struct {
	Addr      string `aliases:"server" default:"127.0.0.1:8091" env:"DUCKS_ADDR,DUCKS_SERVER" help:"Where ducks serve answers: its address, or with TLS https:// and that." placeholder:"HOST:PORT"`
	Token     string `env:"DUCKS_TOKEN" help:"The token that lets you in." placeholder:"TOKEN"`
	TokenFile string `name:"token-file" env:"DUCKS_TOKEN_FILE" help:"A file with the token, as first-token of a data directory." placeholder:"FILE"`
	CA        string `name:"ca" env:"DUCKS_CA" help:"The certificate of the CA of an https server, in PEM; without it, those of the system." placeholder:"FILE"`
	JSON      bool   `name:"json" help:"Print all that the server says, as JSON."`
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// token returns the one that is given, or that of the file.
func (s *Server) token() (string, error) {
	switch {
	case s.Token != "":
		return s.Token, nil
	case s.TokenFile == "":
		return "", errors.New("no token: give --token, --token-file or DUCKS_TOKEN; ducks serve has " +
			"written the first one to first-token in its data directory")
	}
	b, err := os.ReadFile(s.TokenFile)
	return strings.TrimSpace(string(b)), err
}

// do asks the server. into gets what it says; it is printed to out as JSON if that is wanted: done
// is true then.
func (s *Server) do(ctx context.Context, out io.Writer, method, path string, body,
	into any) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var b []byte
	if body != nil {
		if b, err = json.Marshal(body); err != nil {
			return false, err
		}
	}
	q, err := s.request(ctx, method, path, bytes.NewReader(b))
	if err != nil {
		return false, err
	}
	transport, err := s.transport()
	if err != nil {
		return false, err
	}
	r, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		return false, unreached(err)
	}
	defer r.Body.Close()
	return s.answer(out, r, into)
}

// send asks for something that is not answered, except with an error.
func (s *Server) send(ctx context.Context, out io.Writer, method, path string, body any) error {
	_, err := s.do(ctx, out, method, path, body, nil)
	return err
}

// unreached says of an error of a request what to look at.
func unreached(err error) error {
	var of *net.OpError
	if errors.As(err, &of) && of.Op == "dial" {
		return fmt.Errorf("%w: does ducks serve run there?", err)
	}
	return err
}

// ask asks for something that is not printed.
func (s *Server) ask(ctx context.Context, path string, into any) error {
	quiet := *s
	quiet.JSON = false
	_, err := quiet.do(ctx, io.Discard, "GET", path, nil, into)
	return err
}

// transport returns one that trusts the CA.
func (s *Server) transport() (*http.Transport, error) {
	trusted, err := trust.CA(s.CA)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DisableKeepAlives: true,
		TLSClientConfig:   trusted,
	}, nil
}

// request returns one that has the token.
func (s *Server) request(ctx context.Context, method, path string,
	body io.Reader) (*http.Request, error) {
	token, err := s.token()
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, method, s.url()+"/api/v1/"+path, body)
	if err == nil {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return q, err
}

// url returns where the server is. An address alone is that of one without TLS.
func (s *Server) url() string {
	at := strings.TrimSuffix(s.Addr, "/")
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	return at
}

// answer reads what the server says, as do.
func (s *Server) answer(out io.Writer, r *http.Response, into any) (done bool, err error) {
	answer, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return false, err
	}
	if r.StatusCode != http.StatusOK {
		var said struct{ Error string }
		if json.Unmarshal(answer, &said) != nil || said.Error == "" {
			said.Error = r.Status
		}
		return false, errors.New(said.Error)
	}
	if s.JSON {
		_, err := out.Write(answer)
		return true, err
	}
	if into == nil {
		return false, nil
	}
	return false, json.Unmarshal(answer, into)
}

// object returns a path with a name in it.
func object(kind, name, verb string) string {
	path := kind + "/" + url.PathEscape(name)
	if verb != "" {
		path += "/" + verb
	}
	return path
}
