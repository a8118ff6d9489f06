package cursortest

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Options say how a client behaves. Only BaseURL has no default.
type Options struct {
	// BaseURL is that of the server, without a path.
	BaseURL string
	// Token is sent as the bearer token.
	Token string
	// HTTP2 selects agent.v1 Run, over TLS for an https URL and with prior knowledge for an http
	// one, instead of RunSSE with BidiAppend over HTTP/1.1.
	HTTP2 bool
	TLS   *tls.Config
	// Dial replaces the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ConversationID is "agent-" and a UUID by default.
	ConversationID string
	// Model is "stub-model" by default.
	Model string
	// Dir is the workspace; relative paths of tools are below it. The default is the process's own
	// directory, so a test that lets tools write sets it.
	Dir string
	// Tools are the custom tools, which the server reaches by mcp_args.
	Tools []Tool
	// Execs replace the default handlers by kind: the name of an arm of ExecServerMessage, like
	// "read_args". A nil handler makes the kind one that the client does not know.
	Execs map[string]Handler
	// Answer replaces [DefaultAnswer]. A nil response leaves the query open. It may block until ctx
	// ends, which it does with the attempt.
	Answer func(ctx context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse
	// Subagent makes this client the child of another one.
	Subagent *Subagent

	// NoRetry ends a run with its first failure.
	NoRetry bool
	// RetryCanceled retries an end with the code canceled or aborted as a transport failure, as it
	// was seen of the SDK; without it such an end is a silent stop, as section 1.5 has it.
	RetryCanceled bool
	// Backoff stands for the second of the SDK's delays; a millisecond by default.
	Backoff time.Duration
	// Heartbeat (5 s) and ExecHeartbeat (3 s) are the periods of the client's heartbeats.
	Heartbeat, ExecHeartbeat time.Duration
	// StallAfter is the silence after which an attempt is given up; 30 s by default.
	StallAfter time.Duration
	// MaxGap is the silence that counts as a violation; 6 s by default.
	MaxGap time.Duration
	// SteerWait is how long a steer waits for its first state; 15 s by default.
	SteerWait time.Duration
	// Linger is how long Stop waits for the stream to end; 6 s by default.
	Linger time.Duration

	// Binary sends appends as data_binary instead of data, Gzip compresses what is sent.
	Binary, Gzip bool
	// Faults is what goes wrong with appends; Run has no such faults.
	Faults Faults
	// Blobs is what goes wrong with blobs.
	Blobs BlobFaults
	// Watch sees every message of the server before the client acts on it, in order, and must not
	// block for long. The request id is that of the attempt.
	Watch func(requestID string, m *agentv1.AgentServerMessage)
}

// Subagent says whose child a client is (sections 1.4 and 5.7).
type Subagent struct {
	// Type is sent as subagent_type_name.
	Type string
	// ParentRequestID is the request id of the parent's attempt, RootRequestID that of the topmost
	// agent's, ToolCallID the call that started the child.
	ParentRequestID, RootRequestID, ToolCallID string
	// Direct is set for a child that its parent's model controls itself.
	Direct bool
}

func (o Options) withDefaults() Options {
	orElse(&o.ConversationID, "agent-"+newID())
	orElse(&o.Model, "stub-model")
	orElse(&o.Dir, ".")
	orElse(&o.Backoff, time.Millisecond)
	orElse(&o.Heartbeat, 5*time.Second)
	orElse(&o.ExecHeartbeat, 3*time.Second)
	orElse(&o.StallAfter, 30*time.Second)
	orElse(&o.MaxGap, 6*time.Second)
	orElse(&o.SteerWait, 15*time.Second)
	orElse(&o.Linger, 6*time.Second)
	if o.Answer == nil {
		o.Answer = func(_ context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
			return DefaultAnswer(q)
		}
	}
	return o
}

func orElse[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
