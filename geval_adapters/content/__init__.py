"""What a sample holds besides plain text: conversations, tool calls and images, in one inert form."""

from .conversation import CUT_AT, Conversation
from .fields import last_turn, text_fields, turn_fields
from .images import Image, image_numbers, renumbered, unmarked
from .messages import Turn, messages_in

__all__ = [
    "CUT_AT",
    "Conversation",
    "Image",
    "Turn",
    "image_numbers",
    "last_turn",
    "messages_in",
    "renumbered",
    "text_fields",
    "turn_fields",
    "unmarked",
]
