package cursortest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// ErrBusy is for a second run of one client at a time, and ErrIdle for what needs a run.
var (
	ErrBusy = errors.New("a run of this client is going on; wait for it or use another client")
	ErrIdle = errors.New("no run of this client is going on")
)

// Client is one agent as the SDK keeps it. It has one run at a time; its methods are safe for
// concurrent use.
type Client struct {
	o     Options
	http  *http.Client
	blobs *Blobs
	dice  *dice
	key   string // x-blob-encryption-key

	// ctx bounds what outlives a run: background shells.
	ctx       context.Context
	cancel    context.CancelFunc
	processes sync.WaitGroup

	mu        sync.Mutex
	state     *agentv1.ConversationStateStructure
	active    *run
	over      map[string]bool // the call ids of turns that have ended
	ran       []Execution
	children  map[string]*Client
	terminals string
	shells    uint32
}

// New makes a client. Close releases it.
func New(o Options) *Client {
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{
		o: o, http: &http.Client{Transport: transport(o)}, blobs: &Blobs{faults: o.Blobs}, dice: newDice(o.Faults),
		key: randomHex(32), ctx: ctx, cancel: cancel,
		over: map[string]bool{}, children: map[string]*Client{},
	}
}

func transport(o Options) *http.Transport {
	var protocols http.Protocols
	secure := strings.HasPrefix(o.BaseURL, "https:")
	protocols.SetHTTP1(!o.HTTP2)
	protocols.SetHTTP2(o.HTTP2 && secure)
	protocols.SetUnencryptedHTTP2(o.HTTP2 && !secure)
	return &http.Transport{
		DialContext: o.Dial, TLSClientConfig: o.TLS, Protocols: &protocols,
		DisableCompression: true, MaxIdleConnsPerHost: 2 * maxInFlight,
	}
}

// Close ends background shells and frees connections, of this client and its children. No run may be
// going on.
func (c *Client) Close() {
	c.cancel()
	c.processes.Wait()
	c.http.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, child := range c.children {
		child.Close()
	}
	if c.terminals != "" {
		_ = os.RemoveAll(c.terminals)
	}
}

// ConversationID is the id of the conversation.
func (c *Client) ConversationID() string { return c.o.ConversationID }

// Blobs is the store of the client.
func (c *Client) Blobs() *Blobs { return c.blobs }

// Checkpoint returns the last checkpoint, or an empty one. It is sent with the next run.
func (c *Client) Checkpoint() *agentv1.ConversationStateStructure {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return new(agentv1.ConversationStateStructure)
	}
	return proto.CloneOf(c.state)
}

// SetCheckpoint replaces the last checkpoint, as a client does that was rewound or restarted.
func (c *Client) SetCheckpoint(s *agentv1.ConversationStateStructure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = proto.CloneOf(s)
}

// Children returns the subagents by their agent id.
func (c *Client) Children() map[string]*Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.children)
}

// running returns the run that is going on, or nil.
func (c *Client) running() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// terminalsFolder is where background shells write; it is made when first asked for.
func (c *Client) terminalsFolder() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terminals == "" {
		dir, err := os.MkdirTemp("", "cursortest-terminals-")
		if err != nil {
			return "", fmt.Errorf("make the terminals folder: %w", err)
		}
		c.terminals = dir
	}
	return c.terminals, nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
