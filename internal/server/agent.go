package server

import (
	"context"
	"net/netip"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/hook"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/sandbox"
	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/builtin"
	"github.com/roost-dev/roost/internal/tool/shelltool"
	"github.com/roost-dev/roost/internal/tool/tasktool"
	"github.com/roost-dev/roost/internal/tool/todotool"
	"github.com/roost-dev/roost/internal/tool/webtool"
)

// agent puts together what the model sees and may do.
func (s *Server) agent(cfg *actor.Config, dir *datadir.Dir) (connect func(*actor.Engine), err error) {
	user := s.opt.Config
	g, err := openGrants(dir.Join("grants.json"))
	if err != nil {
		return nil, err
	}
	cfg.Judge, cfg.Remember = newJudge(user.Permissions, g).judge, g.add

	around := &surroundings{cfg: user, userSkills: config.DefaultSkills(), log: s.log}
	cfg.Context = around.context
	cfg.Compaction = prompt.Limits{Off: !user.Compaction.Auto, Reserve: user.Compaction.Reserve, Keep: user.Compaction.Keep}
	cfg.Hooks = s.hooks(user.Hooks)

	cfg.Tools = append(builtin.With(s.bash(user)), todotool.New())
	if user.Web.Fetch {
		cfg.Tools = append(cfg.Tools, webtool.New(reach(user.Web)))
	}
	if user.Web.Search.Provider != "" {
		cfg.Tools = append(cfg.Tools, webtool.NewSearch(searching(user.Web.Search)))
	}
	servers, err := openMCP(user, dir.Path(), s.opt.Version, s.log)
	if err != nil {
		return nil, err
	}
	s.onClose(servers.close)
	cfg.MoreTools = servers.tools
	if user.Subagents.Depth == 0 {
		return func(*actor.Engine) {}, nil
	}
	task := &late{}
	cfg.Tools = append(cfg.Tools, task)
	return func(e *actor.Engine) {
		task.Tool = tasktool.New(e, tasktool.Options{Depth: user.Subagents.Depth, Parallel: user.Subagents.Parallel})
	}, nil
}

// late is the tool that needs the engine, which needs the tools.
type late struct{ tool.Tool }

// Spec is that of the tool, also before it is there.
func (l *late) Spec() tool.Spec {
	if l.Tool == nil {
		return tasktool.New(nil, tasktool.Options{}).Spec()
	}
	return l.Tool.Spec()
}

// reach says which addresses web pages may be read from.
func reach(cfg config.Web) webtool.Policy {
	if cfg.AllowPrivate {
		return func(netip.AddrPort) error { return nil }
	}
	return webtool.Public
}

// searching says which service the web is searched with.
func searching(cfg config.Search) webtool.SearchOptions {
	return webtool.SearchOptions{
		Provider: webtool.Provider(cfg.Provider), URL: cfg.URL,
		Key: func(ctx context.Context) (string, error) {
			key, err := cfg.Key.Value(ctx)
			return key.Reveal(), err
		},
	}
}

// bash says how programs run: without the keys of the server, and confined if the user wants.
func (s *Server) bash(cfg *config.Config) shelltool.Options {
	opt := shelltool.Options{Env: shelltool.Environ(cfg.KeyEnv...)}
	if cfg.Permissions.Sandbox != config.SandboxOn {
		return opt
	}
	opt.Wrap = func(call tool.Call, argv []string) ([]string, []string, error) {
		return sandbox.Wrap(sandbox.Options{Dir: call.Dir, OutputDir: call.OutputDir, Temp: call.OutputDir, Required: true}, argv)
	}
	return opt
}

func (s *Server) hooks(cfg config.Hooks) actor.Hooks {
	if len(cfg.BeforePrompt)+len(cfg.BeforeTool)+len(cfg.AfterTool)+len(cfg.RunEnd) == 0 {
		return nil
	}
	list := func(hooks []config.Hook) []hook.Hook {
		var out []hook.Hook
		for _, h := range hooks {
			out = append(out, hook.Hook(h))
		}
		return out
	}
	return hook.New(hook.Options{
		Prompt: list(cfg.BeforePrompt), Before: list(cfg.BeforeTool), After: list(cfg.AfterTool), RunEnd: list(cfg.RunEnd),
		Env: shelltool.Environ(s.opt.Config.KeyEnv...)(), Logger: s.log,
	})
}
