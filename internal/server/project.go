package server

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/project"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
)

// readTimeout is how long reading a project's rules may take.
const readTimeout = 5 * time.Second

// surroundings says what the model is told of a session's project. It is safe for concurrent
// use.
type surroundings struct {
	cfg        *config.Config
	userSkills string // directory of the user's own skills; empty for none
	log        *slog.Logger
}

// context reads the rules and skills of a session's project. What cannot be read is left out:
// it is no reason to refuse a prompt.
func (s *surroundings) context(ctx context.Context, state *session.State) prompt.Context {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := project.Read(ctx, project.Options{Dir: state.Cwd, Confined: s.cfg.Workspace.Confine, UserSkills: s.userSkills})
	if err != nil {
		s.log.Warn("project cannot be read", slog.String("session", string(state.ID)), slog.Any("error", err))
	}
	for _, notice := range found.Notices {
		s.log.Info("project", slog.String("session", string(state.ID)), slog.String("notice", notice))
	}
	c := prompt.Context{
		Env: prompt.Env{
			Cwd: state.Cwd, OS: runtime.GOOS, Shell: os.Getenv("SHELL"), Branch: found.Branch,
			Date: time.UnixMilli(state.CreatedAt).UTC().Format(time.DateOnly),
		},
		Rules: found.Rules, Skills: found.Skills,
	}
	if path := s.cfg.Prompt.UserRules; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			s.log.Warn("user rules cannot be read", slog.Any("error", err))
		} else {
			c.UserRules = []string{string(text)}
		}
	}
	return c
}
