package cursor

import (
	"context"
	"log/slog"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const (
	askTimeout = 20 * time.Second // of one question to a model

	maxTitle  = 80      // runes
	maxBranch = 60      // bytes
	maxCommit = 4 << 10 // bytes

	maxTitleText = 8 << 10  // bytes of a conversation that a title is made of
	maxDiffText  = 48 << 10 // bytes of changes that a commit message is made of
)

const (
	titlePrompt = "You name conversations. Answer with a title of two to six words for the conversation that begins with the text you are given, in the language of that text, without quotes and without a full stop. Do not answer the text."

	commitPrompt = "You write commit messages. Answer with nothing but the message for the changes you are given: a first line of at most 72 characters in the imperative, and, only if the changes need it, an empty line and a short explanation. If earlier messages are given, write in their style."

	branchPrompt = "You name git branches. Answer with nothing but a name for the changes you are given: two to five lower-case English words joined by hyphens."
)

// ask puts a question to the default model, and to nobody else. The answer is empty when there is
// nobody to ask, nothing to say, or no answer in time: what is asked here is an ornament, and a client
// does without.
func (c *calls) ask(ctx context.Context, system, text string) string {
	if c.opt.Ask == nil || strings.TrimSpace(text) == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return ""
	}
	answer, err := c.opt.Ask(ctx, c.opt.Default(), system, text)
	if err != nil {
		c.log.Warn("no answer to a short question", slog.Any("error", err))
		return ""
	}
	return answer
}

// nameAgent and nameTab name a conversation (section 8.8).
func (c *calls) nameAgent(ctx context.Context, r unaryRequest) ([]byte, error) {
	m := new(agentv1.NameAgentRequest)
	if err := r.decode(m); err != nil {
		return nil, err
	}
	return r.message(&agentv1.NameAgentResponse{Name: c.titleOf(ctx, m.GetUserMessage())})
}

func (c *calls) nameTab(ctx context.Context, r unaryRequest) ([]byte, error) {
	var texts []string
	for _, message := range r.part().all(1, "messages") {
		texts = append(texts, message.texts(1, "text")...)
	}
	return r.replyText("name", c.titleOf(ctx, strings.Join(texts, "\n\n")))
}

func (c *calls) titleOf(ctx context.Context, text string) string {
	answer := c.ask(ctx, titlePrompt, beginning(text, maxTitleText))
	return strings.TrimRight(unquoted(oneLine(answer, maxTitle)), ".")
}

// commitMessage writes a message for changes (section 9.3).
func (c *calls) commitMessage(ctx context.Context, r unaryRequest) ([]byte, error) {
	diffs := strings.Join(r.part().texts(1, "diffs"), "\n")
	if diffs == "" {
		return r.fields()
	}
	text := "Changes:\n" + beginning(diffs, maxDiffText)
	if before := strings.Join(r.part().texts(2, "previousCommitMessages"), "\n---\n"); before != "" {
		text = "Earlier messages:\n" + beginning(before, maxTitleText) + "\n\n" + text
	}
	return r.replyText("commitMessage", beginning(unfenced(c.ask(ctx, commitPrompt, text)), maxCommit))
}

// branchName names a branch for changes. The message is not published; like that of a commit message
// it has the changes first.
func (c *calls) branchName(ctx context.Context, r unaryRequest) ([]byte, error) {
	diffs := strings.Join(r.part().texts(1, "diffs"), "\n")
	return r.replyText("branchName", branch(c.ask(ctx, branchPrompt, beginning(diffs, maxDiffText))))
}

// replyText returns a message whose first field is a text; an empty one is left out.
func (r unaryRequest) replyText(name, text string) ([]byte, error) {
	if text == "" {
		return r.fields()
	}
	return r.fields(wireField{1, name, text})
}

// beginning returns at most limit bytes of the beginning of s, as valid UTF-8.
func beginning(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}

// unquoted removes what models put around a short answer.
func unquoted(s string) string { return strings.Trim(s, " \"'`*#“”«»") }

// unfenced removes a code fence around a whole answer.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	inner, fenced := strings.CutPrefix(s, "```")
	if !fenced {
		return s
	}
	_, inner, _ = strings.Cut(inner, "\n") // the language
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
}

// branch makes a name that git takes of a model's answer: words of a-z, 0-9 and underscores with single
// hyphens or slashes between them; empty if nothing is left.
func branch(answer string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(oneLine(unfenced(answer), maxBranch)) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case r == '/' && joins(b.String()):
			b.WriteByte('/')
		case (r == '-' || r == ' ') && joins(b.String()):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-/")
}

// joins reports whether a hyphen or slash may follow s.
func joins(s string) bool { return s != "" && !strings.ContainsAny(s[len(s)-1:], "-/") }
