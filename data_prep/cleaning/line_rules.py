"""What can be said of a line of text by itself: its normalization, and whether it is prose.

The rules for boilerplate are few and strict: a line goes only if all of it is of a known kind.
docs/cleaning.md lists them.
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
_ITEMS = re.compile(r"\s*[|»›>•·→]\s+|\s+[|»›>•·→]\s*")
_SENTENCE_END = re.compile(r"[.!?。！？।؟:;,]")
_URL = re.compile(r"<?(https?://|www\.)\S+>?", re.IGNORECASE)
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
_RIGHTS = re.compile(
    r"\ball rights reserved\b|\balle rechte vorbehalten\b|\btous droits réservés\b|"
    r"\btodos los derechos reservados\b|\btodos os direitos reservados\b|"
    r"\btutti i diritti riservati\b|\balle rechten voorbehouden\b|"
    r"\bwszelkie prawa zastrzeżone\b|\bвсе права защищены\b", re.IGNORECASE)
_COPYRIGHT = re.compile(r"(copyright\b\s*)?(©|\(c\)|copyright)\s*(\d{4}\b.*|.*\b\d{4})\W*",
                        re.IGNORECASE)
_COOKIES = re.compile(
    r"\b(site|website|page|we|store) (may )?uses? cookies\b|\baccept (all )?cookies\b|"
    r"\bcookie (settings|preferences|consent|notice)\b|\bconsent to (the use of|our) cookies\b|"
    r"\b(use|placement) of cookies\b.*\b(site|website|browser|browsing)\b|"
    r"\b(verwenden|verwendet|nutzen|nutzt|benutzt) cookies\b|\butilis(e|ons) des cookies\b|"
    r"\b(utiliza|utilizamos|usa|usamos) cookies\b|\b(utilizza|utilizziamo|usa) (i )?cookies?\b|"
    r"\b(gebruikt|gebruiken) cookies\b", re.IGNORECASE)
_SCRIPTS = re.compile(
    r"\b(enable|activate|requires?|turn on) java ?script\b|\bjava ?script (is |must be )?"
    r"(disabled|enabled|required)\b|\bbrowser does not support\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"lorem ipsum dolor", re.IGNORECASE)


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
    bare = line.strip(_FRAME).lower()
    return (bare in _LINKS or _URL.fullmatch(line) is not None or _is_buttons(bare)
            or _is_menu(line) or _COPYRIGHT.fullmatch(line) is not None
            or any(notice.search(line) for notice in (_RIGHTS, _COOKIES, _SCRIPTS, _PLACEHOLDER)))


def _is_buttons(bare: str) -> bool:
    """Tells whether a line is nothing but the labels of buttons that share a page."""
    words = re.split(r"[\s,|/•·&]+", bare)
    return (len(words) > 1 and all(word in _BUTTONS for word in words)
            and any(word in _NAMES for word in words))


def _is_menu(line: str) -> bool:
    """Tells whether a line is three or more short items with separators, and no sentence."""
    items = _ITEMS.split(line)
    return (len(items) > 2 and not _SENTENCE_END.search(line)
            and all(0 < len(item.split()) <= _MOST_ITEM_WORDS for item in items))
