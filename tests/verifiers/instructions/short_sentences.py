"""Short everyday sentences in seven languages that share an alphabet."""

SHORT = {
    "en": """Yes, I can help you.
Here are some ideas.
Tea is better than milk.
The cat sleeps on the sofa.
We went home after dinner.
Please close the window.
What time does the train leave?
My sister lives in London.
It was raining all day.
I do not know the answer.
They have three small children.
Thank you for your letter.
This book is very interesting.
He works in a hospital.
You should drink more water.""",
    "fr": """Oui, je peux vous aider.
Voici quelques idées.
Le thé est meilleur que le lait.
Le chat dort sur le canapé.
Nous sommes rentrés après le dîner.
Fermez la fenêtre, s'il vous plaît.
À quelle heure part le train ?
Ma sœur habite à Londres.
Il a plu toute la journée.
Je ne connais pas la réponse.
Ils ont trois petits enfants.
Merci pour votre lettre.
Ce livre est très intéressant.
Il travaille dans un hôpital.
Tu devrais boire plus d'eau.""",
    "de": """Ja, ich kann Ihnen helfen.
Hier sind einige Ideen.
Tee ist besser als Milch.
Die Katze schläft auf dem Sofa.
Wir gingen nach dem Essen nach Hause.
Bitte schließen Sie das Fenster.
Wann fährt der Zug ab?
Meine Schwester wohnt in London.
Es hat den ganzen Tag geregnet.
Ich kenne die Antwort nicht.
Sie haben drei kleine Kinder.
Vielen Dank für Ihren Brief.
Dieses Buch ist sehr interessant.
Er arbeitet in einem Krankenhaus.
Du solltest mehr Wasser trinken.""",
    "es": """Sí, puedo ayudarte.
Aquí tienes algunas ideas.
El té es mejor que la leche.
El gato duerme en el sofá.
Volvimos a casa después de cenar.
Por favor, cierra la ventana.
¿A qué hora sale el tren?
Mi hermana vive en Londres.
Llovió durante todo el día.
No conozco la respuesta.
Tienen tres hijos pequeños.
Gracias por su carta.
Este libro es muy interesante.
Él trabaja en un hospital.
Deberías beber más agua.""",
    "it": """Sì, posso aiutarti.
Ecco alcune idee.
Il tè è meglio del latte.
Il gatto dorme sul divano.
Siamo tornati a casa dopo cena.
Per favore, chiudi la finestra.
A che ora parte il treno?
Mia sorella vive a Londra.
Ha piovuto tutto il giorno.
Non conosco la risposta.
Hanno tre bambini piccoli.
Grazie per la sua lettera.
Questo libro è molto interessante.
Lui lavora in un ospedale.
Dovresti bere più acqua.""",
    "nl": """Ja, ik kan u helpen.
Hier zijn enkele ideeën.
Thee is beter dan melk.
De kat slaapt op de bank.
We gingen na het eten naar huis.
Doe het raam dicht, alstublieft.
Hoe laat vertrekt de trein?
Mijn zus woont in Londen.
Het heeft de hele dag geregend.
Ik weet het antwoord niet.
Zij hebben drie kleine kinderen.
Bedankt voor uw brief.
Dit boek is heel interessant.
Hij werkt in een ziekenhuis.
Je zou meer water moeten drinken.""",
    "pt": """Sim, eu posso ajudar você.
Aqui estão algumas ideias.
O chá é melhor que o leite.
O gato dorme no sofá.
Voltamos para casa depois do jantar.
Por favor, feche a janela.
A que horas parte o trem?
Minha irmã mora em Londres.
Choveu durante o dia inteiro.
Eu não sei a resposta.
Eles têm três filhos pequenos.
Obrigado pela sua carta.
Este livro é muito interessante.
Ele trabalha em um hospital.
Você deveria beber mais água.""",
}
SENTENCES = {language: text.split("\n") for language, text in SHORT.items()}
