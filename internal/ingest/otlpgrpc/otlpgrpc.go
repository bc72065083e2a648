// Package otlpgrpc takes metrics of OpenTelemetry over gRPC
// (opentelemetry.io/docs/specs/otlp, OTLP/gRPC). It is a thin layer between google.golang.org/grpc
// and package otlp, which reads the messages where they lie.
package otlpgrpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // exporters may pack
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/otlp"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/buckets"
)

// Options configure a server.
type Options struct {
	Metrics        *otlp.Server
	Bucket         string
	MaxMessage     int // bytes, unpacked
	MaxConnections int
	// Refuse counts a request that is turned away, under a reason.
	Refuse func(reason string)
}

// mostAtOnce is how many requests are read and stored at a time: each may be of MaxMessage.
// Others are told to come back.
const mostAtOnce = 16

// Server serves a listener.
type Server struct {
	o    Options
	grpc *grpc.Server

	mu      sync.Mutex
	running int // requests
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	s := &Server{o: o}
	s.grpc = grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.MaxRecvMsgSize(o.MaxMessage),
		grpc.MaxConcurrentStreams(mostAtOnce), grpc.InTapHandle(s.admit))
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.metrics.v1.MetricsService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: s.export}},
	}, nil)
	return s
}

// Serve serves a listener until it fails or Shutdown, when it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	err := s.grpc.Serve(netutil.LimitListener(ln, s.o.MaxConnections))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Shutdown ends all connections. Requests that were answered are durable; clients send the others
// again.
func (s *Server) Shutdown() { s.grpc.Stop() }

// admit turns a request away before its message is read, where too many are under way.
func (s *Server) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= mostAtOnce {
		s.o.Refuse("busy")
		return nil, status.Errorf(codes.Unavailable, "%d requests are under way: try again",
			mostAtOnce)
	}
	s.running++
	context.AfterFunc(ctx, func() { // the context of a stream ends with it
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	})
	return ctx, nil
}

// message is the bytes of one.
type message []byte

// export stores an ExportMetricsServiceRequest.
func (s *Server) export(_ any, ctx context.Context, decode func(any) error,
	_ grpc.UnaryServerInterceptor) (any, error) {
	var in message
	if err := decode(&in); err != nil {
		return nil, err
	}
	var from netip.AddrPort
	if p, ok := peer.FromContext(ctx); ok {
		from, _ = netip.ParseAddrPort(p.Addr.String()) // zero for what is no TCP connection
	}
	written, err := s.o.Metrics.Write(ctx, s.o.Bucket, from, in)
	var (
		partial *otlp.PartialError
		refusal *acked.Refusal
	)
	_, refused := unacked.Refused(err)
	switch {
	case err == nil, errors.As(err, &partial), errors.As(err, &refusal) && !refusal.Retry():
		out := message(written.Response(err))
		return &out, nil
	case errors.Is(err, otlp.ErrMalformed), errors.Is(err, buckets.ErrInvalid):
		return nil, status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, buckets.ErrUnknown):
		return nil, status.Error(codes.NotFound, err.Error())
	case refusal != nil, refused, ctx.Err() != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return nil, status.Error(codes.Internal, err.Error())
}

// codec hands messages on as they are.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*message))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*message) = data.Materialize()
	return nil
}
