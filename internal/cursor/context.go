package cursor

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/project"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// gather finds out what the wish is about: the client's surroundings, which come with the action, in
// blobs, or have to be asked for (section 3.9), and the blobs of the message. What cannot be had in
// time is done without.
func (d *driver) gather(ctx context.Context) error {
	if d.request != nil {
		return nil
	}
	if _, err := d.pump(ctx, connectWait, func() bool { return isClosed(d.link.Connected()) }); err != nil {
		return err
	}
	action := d.attempt.action
	d.request = cursorwire.Context(action)
	waiting := false
	parts := action.GetRequestContextParts()
	if d.request == nil && parts == nil && !d.attempt.noContext {
		waiting = true
		d.ask(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_RequestContextArgs{RequestContextArgs: &agentv1.RequestContextArgs{}}},
			contextWait, func(m *agentv1.ExecClientMessage) {
				waiting = false
				d.request = m.GetRequestContextResult().GetSuccess().GetRequestContext()
			})
	}
	want := append(partIDs(parts), messageBlobs(cursorwire.UserMessage(action))...)
	for _, entry := range d.attempt.state.GetRootPromptMessagesJson() {
		if id, ok := cursorwire.ParseBlobID(entry); ok {
			want = append(want, id)
		}
	}
	for _, id := range want {
		d.kv.get(id)
	}
	if _, err := d.pump(ctx, contextWait, func() bool { return !waiting && d.kv.knows(want) }); err != nil {
		return err
	}
	d.joinParts(parts)
	if d.request == nil {
		d.request = &agentv1.RequestContext{}
	}
	d.readEnv()
	return nil
}

func partIDs(p *agentv1.RequestContextPartReferences) []cursorwire.BlobID {
	var ids []cursorwire.BlobID
	for _, entry := range [][]byte{p.GetRulesBlobId(), p.GetSkillsBlobId(), p.GetSubagentsBlobId(), p.GetMcpsBlobId()} {
		if id, ok := cursorwire.ParseBlobID(entry); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// joinParts merges what came by blob id into the context.
func (d *driver) joinParts(p *agentv1.RequestContextPartReferences) {
	if p == nil {
		return
	}
	joined := &agentv1.RequestContext{}
	for _, id := range partIDs(p) {
		part := new(agentv1.RequestContext)
		if data, ok := d.kv.have(id); ok && data != nil && proto.Unmarshal(data, part) == nil {
			proto.Merge(joined, part)
		}
	}
	if dynamic := p.GetDynamicContext(); dynamic != nil {
		proto.Merge(joined, dynamic)
	}
	if d.request == nil { // "dual" sends both, and they say the same
		d.request = joined
	}
}

// readEnv takes what the tools need of the surroundings.
func (d *driver) readEnv() {
	e := d.request.GetEnv()
	env := &d.tools.env
	env.Root = e.GetProcessWorkingDirectory()
	if env.Root == "" && len(e.GetWorkspacePaths()) > 0 {
		env.Root = e.GetWorkspacePaths()[0]
	}
	if len(env.Root) > session.MaxCwd {
		env.Root = ""
	}
	env.Terminals = e.GetTerminalsFolder()
	env.Session, env.Request, env.Model = d.attempt.conversation, d.attempt.identity, d.attempt.model
	env.PiOnly, env.Agents = d.attempt.piOnly, d.attempt.agents
	for _, a := range d.request.GetCustomSubagents() {
		env.Agents.Types = append(env.Agents.Types, cursortool.AgentType{Name: a.GetName(), Description: a.GetDescription()})
	}
	d.attempt.agents = env.Agents
	env.Todos, env.Plans = todosIn(d.attempt.state), d.attempt.state.GetPlans()
	env.Fetch, env.Search = d.server.opt.Fetch, d.server.opt.Search
}

// surroundings says what the model is to be told of the client's surroundings. A section that the
// client has not computed stays as it was (section 8.3).
func (d *driver) surroundings(ctx context.Context, s *session.State) (session.Context, error) {
	now := d.readContext()
	if s.Context != "" {
		var old prompt.Context
		data, err := d.server.opt.Blobs.Get(ctx, s.Context)
		if err == nil && json.Unmarshal(data, &old) == nil {
			d.keepOld(&now, old)
		}
	}
	return d.server.opt.Engine.Context(ctx, d.id, now)
}

func (d *driver) keepOld(now *prompt.Context, old prompt.Context) {
	r := d.request
	if len(now.Rules) == 0 && len(now.UserRules) == 0 && !r.GetRulesInfoComplete() {
		now.Rules, now.UserRules = old.Rules, old.UserRules
	}
	if len(now.Skills) == 0 && !r.GetAgentSkillsInfoComplete() {
		now.Skills = old.Skills
	}
	if now.Client == "" {
		now.Client = old.Client
	}
	if r.GetEnv() == nil {
		now.Env = old.Env
	}
}

func (d *driver) readContext() prompt.Context {
	r, e := d.request, d.request.GetEnv()
	c := prompt.Context{
		Env:    prompt.Env{Cwd: d.tools.env.Root, OS: e.GetOsVersion(), Shell: e.GetShell(), Date: today(e.GetTimeZone())},
		Client: d.systemPrompt(),
	}
	if len(r.GetGitRepos()) > 0 {
		c.Env.Branch = r.GetGitRepos()[0].GetBranchName()
	}
	for _, rule := range slices.Concat(r.GetRules(), r.GetNonFileRules()) {
		c.Rules = appendRule(c.Rules, &c.UserRules, rule)
	}
	for _, text := range []string{r.GetCloudRule(), r.GetHooksAdditionalContext(), r.GetCommitAttributionMessage(), r.GetPrAttributionMessage()} {
		if text != "" && text != c.Client {
			c.UserRules = append(c.UserRules, text)
		}
	}
	for _, m := range r.GetMcpInstructions() {
		if m.GetInstructions() != "" {
			c.UserRules = append(c.UserRules, "Of the MCP server "+m.GetServerName()+":\n"+m.GetInstructions())
		}
	}
	for _, skill := range r.GetAgentSkills() {
		if !skill.GetDisableModelInvocation() && skill.GetFullPath() != "" {
			c.Skills = append(c.Skills, project.Skill{Name: baseName(skill.GetFullPath()), Description: skill.GetDescription(), Path: skill.GetFullPath()})
		}
	}
	if debug := r.GetDebugModeConfig(); debug != nil && d.ckpt.base.Mode == agentv1.AgentMode_AGENT_MODE_DEBUG {
		c.UserRules = append(c.UserRules, "In debug mode, write what you log to "+debug.GetLogPath()+" or send it to "+debug.GetServerEndpoint()+" (session "+debug.GetSessionId()+").")
	}
	return c
}

// systemPrompt is the client's own.
func (d *driver) systemPrompt() string {
	if d.attempt.system != "" {
		return d.attempt.system
	}
	return d.instructions
}

func appendRule(rules []project.Rule, users *[]string, r *agentv1.CursorRule) []project.Rule {
	rule := project.Rule{Path: r.GetFullPath(), Text: r.GetContent(), Kind: project.Always}
	switch t := r.GetType().GetType().(type) {
	case *agentv1.CursorRuleType_FileGlobbed:
		rule.Kind, rule.Globs = project.Glob, t.FileGlobbed.GetGlobs()
	case *agentv1.CursorRuleType_AgentFetched:
		rule.Kind, rule.Description = project.Agent, t.AgentFetched.GetDescription()
	case *agentv1.CursorRuleType_ManuallyAttached:
		rule.Kind = project.Manual
	default:
		if r.GetFullPath() == "" || r.GetSource() == agentv1.CursorRuleSource_CURSOR_RULE_SOURCE_USER {
			*users = append(*users, r.GetContent())
			return rules
		}
	}
	return append(rules, rule)
}

// today is the date where the client is. It is told once: what a session has been told stays.
func today(zone string) string {
	at := time.Now()
	if place, err := time.LoadLocation(zone); err == nil && zone != "" {
		at = at.In(place)
	}
	return at.Format(time.DateOnly)
}

// offer keeps what tools the run has, as a blob, and makes them this attempt's.
func (d *driver) offer(ctx context.Context) (string, error) {
	h, r := d.link.Headers(), d.request
	if r == nil { // an attempt that went on with a run: of the client's own tools it knows the offer
		r = &agentv1.RequestContext{}
	}
	defs := cursortool.Offer(cursortool.Offering{
		Mode: d.ckpt.base.Mode, Subagent: d.attempt.subagent != "", Offers: h.Offers, AskUser: true,
		WebSearch: d.server.opt.Search != nil && allowed(r.WebSearchEnabled), WebFetch: allowed(r.WebFetchEnabled), ReadLints: allowed(r.ReadLintsEnabled),
		MCP:    cursortool.MCPTools(&agentv1.AgentRunRequest{McpTools: d.attempt.mcp, McpFileSystemOptions: d.attempt.mcpFiles}, r),
		Agents: d.tools.env.Agents,
	})
	if d.request == nil && d.tools.set != nil {
		for _, def := range d.tools.set.Definitions() {
			if def.MCP != nil {
				defs = append(defs, def)
			}
		}
	}
	data, err := json.Marshal(defs)
	if err != nil {
		return "", err
	}
	hash, err := d.server.opt.Blobs.Put(ctx, data)
	if err != nil {
		return "", session.Errorf(session.Unavailable, "the tools of the client cannot be kept; is the disk full?")
	}
	d.tools.set, d.attempt.offer = cursortool.NewSet(defs), hash
	return hash, nil
}

func (d *driver) readOffer(ctx context.Context, hash string) ([]cursortool.Definition, error) {
	var defs []cursortool.Definition
	data, err := d.server.opt.Blobs.Get(ctx, hash)
	if err == nil {
		err = json.Unmarshal(data, &defs)
	}
	return defs, err
}

// allowed reads a switch of the client that is on unless it says otherwise.
func allowed(b *bool) bool { return b == nil || *b }
