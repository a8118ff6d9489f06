package piwire

// item writes a transcript item at depth.
func (e *encoder) item(it Item, depth int) {
	switch it := it.(type) {
	case *UserItem:
		e.object(4)
		e.full("id", it.ID)
		e.text("role", "user")
		e.plainContent(it.Content)
		e.count("timestamp", it.Timestamp, 0)
	case *AssistantItem:
		e.assistant(it, depth)
	case *ToolItem:
		e.tool(it, depth)
	case *RawItem:
		if depth+it.height > maxDepth {
			e.refuse(faultDepth)
		}
		e.b = append(e.b, it.enc...)
	default:
		e.invalid = true
	}
}

func (e *encoder) assistant(a *AssistantItem, depth int) {
	e.require(a.consistent())
	e.object(6 + present(a.ResponseModel != "", a.Usage != nil, a.StopReason != "", a.ErrorMessage != nil))
	e.full("id", a.ID)
	e.text("role", "assistant")
	e.key("content")
	e.array(len(a.Content))
	for _, b := range a.Content {
		e.assistantBlock(b, depth+2)
	}
	e.modelRef(&a.Model)
	e.optional("responseModel", a.ResponseModel)
	e.usage(a.Usage)
	e.count("timestamp", a.Timestamp, 0)
	choice(e, "status", assistantStatuses, a.Status)
	e.optional("stopReason", string(a.StopReason))
	e.optionalText("errorMessage", a.ErrorMessage)
}

// consistent reports whether an item has one of the four shapes of section 2.4.
func (a *AssistantItem) consistent() bool {
	switch a.Status {
	case AssistantStreaming:
		return a.StopReason == "" && a.ErrorMessage == nil
	case AssistantComplete:
		switch a.StopReason {
		case StopStop, StopLength, StopToolUse:
			return a.ErrorMessage == nil
		case StopError, StopAborted:
		}
		return false
	case AssistantError:
		return a.StopReason == StopError && (a.ErrorMessage == nil || *a.ErrorMessage != "")
	case AssistantAborted:
		return a.StopReason == StopAborted
	default:
		return false
	}
}

func (e *encoder) tool(t *ToolItem, depth int) {
	e.object(9 + present(!t.Details.IsZero(), t.Usage != nil))
	e.full("id", t.ID)
	e.text("role", "tool")
	e.full("toolCallId", t.ToolCallID)
	e.full("toolName", t.ToolName)
	e.value("input", t.Input, depth+1)
	e.plainContent(t.Content)
	if !t.Details.IsZero() {
		e.value("details", t.Details, depth+1)
	}
	e.usage(t.Usage)
	e.count("timestamp", t.Timestamp, 0)
	choice(e, "status", toolStatuses, t.Status)
	e.boolean("isError", t.Status == ToolError)
}

func (e *encoder) assistantBlock(b Block, depth int) {
	switch b := b.(type) {
	case *Text:
		e.textBlock(b)
	case *Thinking:
		e.object(2 + present(b.Redacted != nil))
		e.text("type", "thinking")
		e.text("thinking", b.Thinking)
		if b.Redacted != nil {
			e.boolean("redacted", *b.Redacted)
		}
	case *ToolCall:
		e.object(4)
		e.text("type", "toolCall")
		e.full("toolCallId", b.ToolCallID)
		e.full("toolName", b.ToolName)
		e.value("input", b.Input, depth+1)
	default:
		e.invalid = true
	}
}

// plainContent writes the content of a user or tool item.
func (e *encoder) plainContent(blocks []Block) {
	e.key("content")
	e.array(len(blocks))
	for _, b := range blocks {
		switch b := b.(type) {
		case *Text:
			e.textBlock(b)
		case *Image:
			e.object(3)
			e.text("type", "image")
			e.text("data", b.Data)
			e.full("mimeType", b.MimeType)
		default:
			e.invalid = true
		}
	}
}

func (e *encoder) textBlock(b *Text) {
	e.object(2)
	e.text("type", "text")
	e.text("text", b.Text)
}

func (e *encoder) usage(u *Usage) {
	if u == nil {
		return
	}
	e.key("usage")
	e.object(6 + present(u.Reasoning != nil))
	e.count("input", u.Input, 0)
	e.count("output", u.Output, 0)
	e.count("cacheRead", u.CacheRead, 0)
	e.count("cacheWrite", u.CacheWrite, 0)
	if u.Reasoning != nil {
		e.count("reasoning", *u.Reasoning, 0)
	}
	e.count("totalTokens", u.TotalTokens, 0)
	e.key("cost")
	e.object(5)
	e.money("input", u.Cost.Input)
	e.money("output", u.Cost.Output)
	e.money("cacheRead", u.Cost.CacheRead)
	e.money("cacheWrite", u.Cost.CacheWrite)
	e.money("total", u.Cost.Total)
}
