package server

import (
	"context"
	"encoding/json"
	"os"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/webtool"
)

// cursor opens the front end of Cursor's agent protocol.
func (s *Server) cursor(engine *actor.Engine, models *models, blobs blob.Store) *cursor.Server {
	cfg := s.opt.Config
	opt := cursor.Options{
		Engine: watchedBy(&s.metrics, engine, "cursor"), Models: models.describe, Default: models.first, Aliases: cfg.Aliases, Blobs: blobs,
		Thinking: cfg.DefaultThinking, EventStreamClients: cfg.Cursor.EventStreamClients, Stuck: stuckClients(&s.metrics, "cursor"), Logger: s.log,
	}
	if cfg.Web.Fetch {
		opt.Fetch = runTool(webtool.New(reach(cfg.Web)), "url")
	}
	if cfg.Web.Search.Provider != "" {
		opt.Search = runTool(webtool.NewSearch(searching(cfg.Web.Search)), "query")
	}
	return cursor.New(opt)
}

// runTool makes a function of a tool with one argument.
func runTool(t tool.Tool, argument string) func(context.Context, string) (string, bool) {
	return func(ctx context.Context, value string) (string, bool) {
		input, err := json.Marshal(map[string]string{argument: value})
		if err != nil {
			return err.Error(), true
		}
		r := t.Run(ctx, tool.Call{Input: input, OutputDir: os.TempDir()}, func(tool.Progress) {})
		return r.Text, r.IsError
	}
}

// mayWork says whether a prompt from another protocol may use the tools of this server in a session
// that a Cursor client has begun: its directory is on the client's machine, which may be this one.
func (s *Server) mayWork(state *session.State) error {
	if state.Origin != cursor.Origin {
		return nil
	}
	if !s.opt.Config.Cursor.LocalTools {
		return session.Errorf(session.Forbidden, "this session's tools are run by its Cursor client, and cursor.local_tools is off: send the prompt from there")
	}
	if info, err := os.Stat(state.Cwd); err != nil || !info.IsDir() {
		return session.Errorf(session.Forbidden, "this session's tools are run by its Cursor client, and its directory does not exist here: send the prompt from there")
	}
	return nil
}
