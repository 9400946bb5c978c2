"""What can be said of a line of text by itself: its normalization, and whether it is prose.

The rules for boilerplate are few and strict: a line goes only if all of it is of a known kind.
docs/how_to/cleaning.md lists them.
"""

import dataclasses
import re
import unicodedata

from data_prep.cleaning.settings import CleaningSettings

_LONGEST_NOTICE = 400
"""Characters; a longer line is prose that speaks of cookies or rights."""
_BUTTONS = frozenset("""
    share tweet pin like follow email e-mail print copy link save bookmark subscribe facebook
    twitter x linkedin whatsapp pinterest reddit tumblr telegram instagram youtube tiktok snapchat
    mastodon bluesky threads xing vkontakte messenger google+ rss teilen partager compartir
    condividi compartilhar delen поделиться on via this us
""".split())
_NAMES = frozenset("""
    facebook twitter linkedin whatsapp pinterest reddit tumblr telegram instagram mastodon bluesky
    xing vkontakte
""".split())
"""Of networks: a line of two words among `_BUTTONS` that has none of these is left alone."""
_MOST_ITEM_WORDS = 4
_SEPARATOR = re.compile(r"\s[|»›>•·→]\s")
_BETWEEN_BUTTONS = re.compile(r"[\s,|/•·&]+")
_MOST_BUTTONS = 20
_SENTENCE_END = re.compile(r"[.!?。！？।؟:;,]")
_URL = re.compile(r"<?(https?://|www\.)\S+>?")
_FRAME = "«»‹›<>[](){}|•·→←↑↓▲▼►◄*-–—_.:…! "
_LINKS = frozenset("""
    read more|continue reading|click here|learn more|find out more|show more|load more|see more|
    view all|see all|skip to content|skip to main content|skip to navigation|back to top|
    jump to navigation|toggle navigation|main menu|home page|homepage|site map|sitemap|log in|
    login|sign in|sign up|log out|register now|add to cart|add to basket|leave a comment|
    leave a reply|post a comment|no comments|previous post|next post|previous article|
    next article|related posts|related articles|advertisement|advertisements|sponsored content|
    privacy policy|cookie policy|terms of use|terms of service|terms and conditions|contact us|
    weiterlesen|mehr lesen|zum inhalt springen|nach oben|impressum|datenschutz|
    datenschutzerklärung|anmelden|lire la suite|en savoir plus|aller au contenu|mentions légales|
    leer más|ver más|saltar al contenido|aviso legal|leggi tutto|leggi di più|vai al contenuto|
    leia mais|lees meer|czytaj więcej|читать далее
""".replace("\n", "").replace("    ", "").split("|"))
_COPYRIGHT = re.compile(r"(copyright\b\s*)?(©|\(c\)|copyright)\s*(\d{4}\b.*|.*\b\d{4})\W*")
_COOKIES = re.compile(
    r"\b(site|website|page|we|store) (may )?uses? cookies\b|\baccept (all )?cookies\b|"
    r"\bcookie (settings|preferences|consent|notice)\b|\bconsent to (the use of|our) cookies\b|"
    r"\b(use|placement) of cookies\b.*\b(site|website|browser|browsing)\b|"
    r"\b(verwenden|verwendet|nutzen|nutzt|benutzt) cookies\b|\butilis(e|ons) des cookies\b|"
    r"\b(utiliza|utilizamos|usa|usamos) cookies\b|\b(utilizza|utilizziamo|usa) (i )?cookies?\b|"
    r"\b(gebruikt|gebruiken) cookies\b")
_SCRIPTS = re.compile(
    r"\b(enable|activate|requires?|turn on) java ?script\b|"
    r"\bjava ?script (is |must be )?(disabled|enabled|required)\b")
_NOTICES = (
    "all rights reserved", "alle rechte vorbehalten", "tous droits réservés",
    "todos los derechos reservados", "todos os direitos reservados",
    "tutti i diritti riservati", "alle rechten voorbehouden", "wszelkie prawa zastrzeżone",
    "все права защищены", "your browser does not support", "lorem ipsum dolor")


@dataclasses.dataclass(frozen=True)
class LineRules:
    """The measures that look at a line alone."""

    settings: CleaningSettings

    @property
    def are_on(self) -> bool:
        """Whether any of them is."""
        wanted = self.settings
        return (wanted.unicode != "none" or wanted.drop_letterless_lines or wanted.drop_boilerplate
                or bool(wanted.min_line_characters or wanted.max_line_characters))

    def normalized(self, line: str) -> str:
        """Returns a line in the Unicode form that is asked for, stripped."""
        form = self.settings.unicode
        if form == "none" or line.isascii():
            return line
        return unicodedata.normalize(form.upper(), line).strip()

    def reason(self, line: str) -> str:
        """Returns why a normalized line goes, as `manifest.Counts` names it; "" if it stays."""
        wanted = self.settings
        if wanted.drop_letterless_lines and not any(map(str.isalpha, line)):
            return "letterless_lines"
        if wanted.drop_boilerplate and is_boilerplate(line):
            return "boilerplate_lines"
        if (len(line) < wanted.min_line_characters
                or 0 < wanted.max_line_characters < len(line)):
            return "short_or_long_lines"
        return ""


def is_boilerplate(line: str) -> bool:
    """Tells whether all of a line is what web sites put around their text.

    >>> is_boilerplate("© 2021 Example Ltd. All rights reserved.")
    True
    >>> is_boilerplate("Home | About us | Contact")
    True
    >>> is_boilerplate("He asked her to share the link on Facebook.")
    False
    """
    if len(line) > _LONGEST_NOTICE:
        return False
    lowered = line.lower()
    bare = lowered.strip(_FRAME)
    return (bare in _LINKS or _URL.fullmatch(lowered) is not None or _is_buttons(bare)
            or _is_menu(line) or _is_notice(lowered))


def _is_notice(lowered: str) -> bool:
    """Tells whether a short line speaks of rights, cookies or what the browser can't do."""
    return (_COPYRIGHT.fullmatch(lowered) is not None
            or any(notice in lowered for notice in _NOTICES)
            or ("cookie" in lowered and _COOKIES.search(lowered) is not None)
            or ("script" in lowered and _SCRIPTS.search(lowered) is not None))


def _is_buttons(bare: str) -> bool:
    """Tells whether a line is nothing but the labels of buttons that share a page."""
    words = _BETWEEN_BUTTONS.split(bare, _MOST_BUTTONS)
    return (1 < len(words) <= _MOST_BUTTONS and _BUTTONS.issuperset(words)
            and not _NAMES.isdisjoint(words))


def _is_menu(line: str) -> bool:
    """Tells whether a line is three or more short items with separators, and no sentence."""
    if _SENTENCE_END.search(line):
        return False
    items = _SEPARATOR.split(line)
    return len(items) > 2 and all(0 < len(item.split()) <= _MOST_ITEM_WORDS for item in items)
